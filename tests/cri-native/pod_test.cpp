// The life of a pod: made, listed, stopped, removed; and what undoes a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/cri-native/harness.hpp"

namespace gantry::cri_native::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class pods : public ::testing::Test {
protected:
    void TearDown() override { EXPECT_THAT(node_.misbehaviour(), IsEmpty()); }
    node node_;
};

TEST_F(pods, says_who_it_is_and_that_it_is_ready) {
    const auto version = node_.call<cri::VersionResponse>(node_.runtime().version, cri::VersionRequest{});
    ASSERT_TRUE(version) << version.error().message;
    EXPECT_EQ(version->runtime_name(), "gantry");
    EXPECT_EQ(version->runtime_api_version(), "v1");
    const auto status = node_.call<cri::StatusResponse>(node_.runtime().status, cri::StatusRequest{});
    ASSERT_TRUE(status) << status.error().message;
    for (const auto& condition : status->status().conditions()) EXPECT_TRUE(condition.status()) << condition.type();
    EXPECT_EQ(status->status().conditions_size(), 2);
}

TEST_F(pods, have_an_address_a_hostname_and_files_in_etc) {
    auto config = node_.pod("web");
    config.mutable_dns_config()->add_servers("10.96.0.10");
    config.mutable_dns_config()->add_searches("default.svc.cluster.local");
    config.mutable_dns_config()->add_options("ndots:5");
    const auto id = node_.run_pod(config);
    ASSERT_TRUE(id) << id.error().message;
    const auto status = node_.pod_status(*id);
    EXPECT_EQ(status.state(), cri::SANDBOX_READY);
    EXPECT_EQ(status.network().ip(), "127.0.0.1");
    EXPECT_EQ(status.labels().at("pod"), "web");
    EXPECT_GT(status.created_at(), 0);
    const auto one = node_.launch(
        *id, node_.shell("c", "hostname; cat /etc/hostname /etc/resolv.conf; grep -c localhost /etc/hosts"));
    ASSERT_TRUE(one) << one.error().message;
    ASSERT_TRUE(node_.wait_exit(*one));
    EXPECT_EQ(node_.log(*one),
              "web\nweb\nsearch default.svc.cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n2\n");
}

TEST_F(pods, are_listed_by_id_state_and_label) {
    const auto a = node_.run_pod(node_.pod("a"));
    const auto b = node_.run_pod(node_.pod("b"));
    ASSERT_TRUE(a && b);
    ASSERT_TRUE(node_.stop_pod(*b));
    const auto list = [&](auto change) {
        cri::ListPodSandboxRequest request;
        change(*request.mutable_filter());
        const auto response = node_.call<cri::ListPodSandboxResponse>(node_.runtime().list_pod_sandbox, request);
        std::set<std::string> ids;
        for (const auto& item : response->items()) ids.insert(item.id());
        return ids;
    };
    EXPECT_THAT(list([](auto&) {}), ElementsAre(std::min(*a, *b), std::max(*a, *b)));
    EXPECT_THAT(list([&](auto& filter) { filter.set_id(a->substr(0, 12)); }), ElementsAre(*a));
    EXPECT_THAT(list([](auto& filter) { filter.mutable_state()->set_state(cri::SANDBOX_NOTREADY); }), ElementsAre(*b));
    EXPECT_THAT(list([](auto& filter) { (*filter.mutable_label_selector())["pod"] = "a"; }), ElementsAre(*a));
    EXPECT_THAT(list([](auto& filter) { (*filter.mutable_label_selector())["pod"] = "c"; }), IsEmpty());
}

TEST_F(pods, leave_nothing_behind) {
    const auto id = node_.run_pod(node_.pod("web"));
    ASSERT_TRUE(id) << id.error().message;
    const auto running = node_.launch(*id, node_.shell("one", "sleep 1000 & sleep 1000"));
    ASSERT_TRUE(running) << running.error().message;
    ASSERT_TRUE(node_.create(*id, node_.shell("two", "true")));
    EXPECT_EQ(node_.networks(), 1);
    EXPECT_FALSE(node_.leftovers().empty());
    ASSERT_TRUE(node_.stop_pod(*id));
    EXPECT_EQ(node_.networks(), 0);
    EXPECT_EQ(node_.pod_status(*id).state(), cri::SANDBOX_NOTREADY);
    const auto ended = node_.status(*running);
    EXPECT_EQ(ended.state(), cri::CONTAINER_EXITED);
    EXPECT_EQ(ended.exit_code(), 137);
    EXPECT_EQ(ended.reason(), "Error");
    ASSERT_TRUE(node_.remove_pod(*id));
    EXPECT_THAT(node_.leftovers(), IsEmpty());
    EXPECT_TRUE(node_.pod_status(*id).id().empty());
}

TEST_F(pods, can_be_stopped_and_removed_again_and_when_unknown) {
    const auto id = node_.run_pod(node_.pod("web"));
    ASSERT_TRUE(id);
    EXPECT_TRUE(node_.stop_pod(*id));
    EXPECT_TRUE(node_.stop_pod(*id));
    EXPECT_TRUE(node_.remove_pod(*id));
    EXPECT_TRUE(node_.remove_pod(*id));
    EXPECT_TRUE(node_.stop_pod("ffffffffffffffffffffffffffffffff"));
    EXPECT_TRUE(node_.remove_pod("ffffffffffffffffffffffffffffffff"));
    EXPECT_TRUE(node_.stop_container("ffffffffffffffffffffffffffffffff", 0));
    EXPECT_TRUE(node_.remove_container("ffffffffffffffffffffffffffffffff"));
}

TEST_F(pods, give_the_same_id_when_run_again) {
    const auto id = node_.run_pod(node_.pod("web"));
    ASSERT_TRUE(id);
    EXPECT_EQ(*node_.run_pod(node_.pod("web")), *id);
    auto other = node_.pod("web");
    other.set_hostname("changed");
    const auto clash = node_.run_pod(other);
    ASSERT_FALSE(clash);
    EXPECT_EQ(clash.error().code, code::exists);
    EXPECT_THAT(clash.error().message, HasSubstr(*id));
    other.mutable_metadata()->set_attempt(1);
    EXPECT_TRUE(node_.run_pod(other));
}

TEST_F(pods, are_undone_when_the_network_fails) {
    node_.fail_network(true);
    const auto id = node_.run_pod(node_.pod("web"));
    ASSERT_FALSE(id);
    EXPECT_THAT(id.error().message, HasSubstr("no addresses left"));
    EXPECT_THAT(id.error().message, HasSubstr("default/web"));
    EXPECT_THAT(node_.leftovers(), IsEmpty());
    EXPECT_EQ(node_.network_calls(), 2); // a failed ADD is followed by a DEL
    node_.fail_network(false);
    EXPECT_TRUE(node_.run_pod(node_.pod("web")));
}

TEST_F(pods, use_the_nodes_network_without_a_network_plugin) {
    auto config = node_.pod("host");
    config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_network(cri::NODE);
    const auto id = node_.run_pod(config);
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(node_.network_calls(), 0);
    EXPECT_EQ(node_.pod_status(*id).network().ip(), "");
    const auto one = node_.launch(*id, node_.shell("c", "readlink /proc/self/ns/net"));
    ASSERT_TRUE(one) << one.error().message;
    ASSERT_TRUE(node_.wait_exit(*one));
    char own[64] = {};
    ASSERT_GT(::readlink("/proc/self/ns/net", own, sizeof own - 1), 0);
    EXPECT_EQ(node_.log(*one), std::string(own) + "\n");
}

TEST_F(pods, share_namespaces_between_their_containers) {
    auto config = node_.pod("shared");
    config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_pid(cri::POD);
    const auto id = node_.run_pod(config);
    ASSERT_TRUE(id) << id.error().message;
    auto first = node_.shell("first", "echo shared > /dev/shm/note; exec tail -f /dev/null");
    auto second = node_.shell(
        "second", "until cat /dev/shm/note; do usleep 1000; done; grep -l '[t]ail' /proc/[0-9]*/cmdline | wc -l");
    for (auto* one : {&first, &second})
        one->mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_pid(cri::POD);
    ASSERT_TRUE(node_.launch(*id, first));
    const auto reader = node_.launch(*id, second);
    ASSERT_TRUE(reader) << reader.error().message;
    ASSERT_TRUE(node_.wait_exit(*reader));
    EXPECT_EQ(node_.log(*reader, "stdout"), "shared\n1\n");
}

TEST_F(pods, run_by_the_dozen_at_once) {
    constexpr int count = 12;
    std::vector<node::op> open;
    for (int i = 0; i < count; ++i) {
        cri::RunPodSandboxRequest request;
        *request.mutable_config() = node_.pod("p" + std::to_string(i));
        open.push_back(node_.begin(node_.runtime().run_pod_sandbox, request.SerializeAsString()));
    }
    std::vector<std::string> ids;
    for (const auto op : open) {
        const auto reply = node_.wait(op);
        ASSERT_TRUE(reply) << reply.error().message;
        cri::RunPodSandboxResponse response;
        ASSERT_TRUE(response.ParseFromString(*reply));
        ids.push_back(response.pod_sandbox_id());
    }
    EXPECT_EQ(node_.networks(), count);
    for (const auto& id : ids) EXPECT_TRUE(node_.remove_pod(id));
    EXPECT_EQ(node_.networks(), 0);
    EXPECT_THAT(node_.leftovers(), IsEmpty());
}

TEST_F(pods, that_nobody_waits_for_any_more_are_undone) {
    cri::RunPodSandboxRequest request;
    *request.mutable_config() = node_.pod("web");
    const auto op = node_.begin(node_.runtime().run_pod_sandbox, request.SerializeAsString());
    node_.cancel(op);
    const auto reply = node_.wait(op);
    if (!reply) { // it may have been quicker
        EXPECT_EQ(reply.error().code, code::cancelled);
        EXPECT_EQ(node_.networks(), 0);
        EXPECT_THAT(node_.leftovers(), IsEmpty());
    }
}

} // namespace
} // namespace gantry::cri_native::testing
