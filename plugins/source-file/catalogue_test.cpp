#include "plugins/source-file/catalogue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::source_file {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

static_pod pod(const std::string& uid, const std::string& name, const std::string& digest = "1") {
    return {.uid = uid,
            .namespace_ = "default",
            .name = name,
            .digest = digest,
            .json = "{\"" + uid + "\":" + digest + "}"};
}

std::string add(const std::string& uid) { return R"({"type":"ADD","pod":{")" + uid + R"(":1}})"; }
std::string removed(const std::string& uid, const std::string& name) {
    return R"({"type":"REMOVE","pod":{"metadata":{"namespace":"default","name":")" + name + R"(","uid":")" + uid +
           R"("}}})";
}
std::string fault(const std::string& path, const std::string& message) {
    return R"({"type":"FAULT","object":")" + path + R"(","message":")" + message + R"("})";
}

} // namespace

TEST(catalogue, says_what_is_new_and_nothing_twice) {
    catalogue c;
    c.set("/m/b", {pod("2", "b")});
    c.set("/m/a", {pod("1", "a"), pod("3", "c")});
    EXPECT_THAT(c.changes(), ElementsAre(add("1"), add("3"), add("2")));
    EXPECT_THAT(c.changes(), IsEmpty());
}

TEST(catalogue, another_uid_is_another_pod_and_the_same_uid_an_update) {
    catalogue c;
    c.set("/m/a", {pod("1", "a"), pod("k", "k")});
    (void)c.changes();
    c.set("/m/a", {pod("2", "a"), pod("k", "k", "2")});
    EXPECT_THAT(c.changes(), ElementsAre(removed("1", "a"), add("2"), R"({"type":"UPDATE","pod":{"k":2}})"));
}

TEST(catalogue, a_file_that_goes_takes_its_pods_along_and_may_come_back) {
    catalogue c;
    c.set("/m/a", {pod("1", "a")});
    (void)c.changes();
    c.forget("/m/a");
    EXPECT_THAT(c.changes(), ElementsAre(removed("1", "a")));
    c.set("/m/a", {pod("1", "a")});
    EXPECT_THAT(c.changes(), ElementsAre(add("1")));
}

TEST(catalogue, a_broken_file_keeps_its_last_good_pods) {
    catalogue c;
    c.set("/m/a", {pod("1", "a")});
    (void)c.changes();
    c.refuse("/m/a", "a:3: no");
    EXPECT_THAT(c.changes(), ElementsAre(fault("/m/a", "a:3: no")));
    c.refuse("/m/a", "a:3: no");
    EXPECT_THAT(c.changes(), IsEmpty());
    c.refuse("/m/a", "a:4: still not");
    EXPECT_THAT(c.changes(), ElementsAre(fault("/m/a", "a:4: still not")));
    c.set("/m/a", {pod("1", "a")});
    EXPECT_THAT(c.changes(), ElementsAre(fault("/m/a", "")));
    c.refuse("/m/a", "again");
    (void)c.changes();
    c.forget("/m/a");
    EXPECT_THAT(c.changes(), ElementsAre(removed("1", "a"), fault("/m/a", "")));
}

TEST(catalogue, the_first_path_wins_a_name_and_the_second_gets_a_fault) {
    catalogue c;
    c.set("/m/a.yaml.bak", {pod("2", "web"), pod("3", "other")});
    EXPECT_THAT(c.changes(), ElementsAre(add("2"), add("3")));
    c.set("/m/a.yaml", {pod("1", "web")});
    const auto why = "/m/a.yaml.bak: pod default/web is also in /m/a.yaml, which wins; remove one of them";
    EXPECT_THAT(c.changes(), ElementsAre(removed("2", "web"), add("1"), fault("/m/a.yaml.bak", why)));
    c.forget("/m/a.yaml");
    EXPECT_THAT(c.changes(), ElementsAre(removed("1", "web"), add("2"), fault("/m/a.yaml.bak", "")));
}

TEST(catalogue, the_first_path_wins_a_uid_too) {
    catalogue c;
    c.set("/m/a", {pod("1", "x")});
    c.set("/m/b", {pod("1", "y")});
    EXPECT_THAT(
        c.changes(),
        ElementsAre(
            add("1"),
            fault("/m/b", "/m/b: pod default/y (by its UID 1) is also in /m/a, which wins; remove one of them")));
}

} // namespace gantry::source_file
