#include "core/host/state_store.hpp"

#include <stdlib.h>

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace gantry::core {
namespace {

struct state_store_test : testing::Test {
    void SetUp() override {
        char pattern[] = "/tmp/gantry-state-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern), nullptr);
        dir_ = pattern;
    }
    void TearDown() override { EXPECT_TRUE(base::remove_tree(dir_)); }
    std::string dir_;
};

TEST_F(state_store_test, keeps_values_until_they_are_deleted) {
    state_store store(dir_ + "/kv");
    EXPECT_EQ(store.get("a").error().code, code::not_found);
    EXPECT_TRUE(store.put("a", "1"));
    EXPECT_TRUE(store.put("a", std::string("\0two", 4)));
    EXPECT_EQ(state_store(dir_ + "/kv").get("a").value(), std::string("\0two", 4));
    EXPECT_TRUE(store.put("b", "x"));
    EXPECT_EQ(store.keys(), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(store.put("a", ""));
    EXPECT_TRUE(store.put("a", ""));
    EXPECT_EQ(store.keys(), std::vector<std::string>{"b"});
}

TEST_F(state_store_test, no_key_reaches_another_ones_file) {
    state_store store(dir_);
    EXPECT_TRUE(store.put("x.tmp", "kept"));
    EXPECT_TRUE(store.put("x", "1"));
    EXPECT_EQ(store.get("x.tmp").value(), "kept");
    EXPECT_TRUE(store.put("..", "a file like any other"));
    EXPECT_EQ(store.get("..").value(), "a file like any other");
}

TEST_F(state_store_test, refuses_what_is_no_key_and_what_is_too_large) {
    state_store store(dir_);
    EXPECT_EQ(store.put("../x", "1").error().message, "state key \"../x\", allowed [A-Za-z0-9._-]{1,128}");
    EXPECT_FALSE(store.put("", "1"));
    EXPECT_FALSE(store.put(std::string(129, 'k'), "1"));
    EXPECT_TRUE(store.put("k", std::string(65536, 'v')));
    EXPECT_EQ(store.put("k", std::string(65537, 'v')).error().message,
              "state value of key \"k\" has 65537 bytes, allowed 65536: keep it in a file of state_dir");
    EXPECT_EQ(store.get("k").value().size(), 65536u);
}

} // namespace
} // namespace gantry::core
