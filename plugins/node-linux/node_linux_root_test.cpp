// The plugin through its ABI, on the machine's own cgroups.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/json.hpp"
#include "gantry/abi/draft/resources.h"
#include "gantry/sdk/fake_host.h"
#include "plugins/common/cgroup/cgroup.hpp"
#include "plugins/common/cgroup/control_file.hpp"

extern "C" const gantry_plugin_entry* gantry_plugin_main_node_linux(void);

namespace gantry::node_linux {

namespace {

namespace json = base::json;
using namespace std::chrono_literals;

constexpr auto patience = 60s; // an emulated machine is slow

cgroup::hierarchy open_tree() {
    auto opened = cgroup::hierarchy::open();
    if (!opened) throw std::runtime_error(opened.error().message);
    return *std::move(opened);
}

class node_linux_plugin : public ::testing::Test {
protected:
    explicit node_linux_plugin(const std::string& config = "{}")
        : host_({.config = config, .node_instance = instance_}),
          plugin_(std::in_place, host_, gantry_plugin_main_node_linux()) {
        const auto started = plugin_->start();
        if (!started.ok()) throw std::runtime_error(started.error.message);
        table_ = plugin_->capability<gantry_resources>(GANTRY_RESOURCES);
    }
    ~node_linux_plugin() override {
        plugin_.reset();
        EXPECT_THAT(host_.misbehaviour(), ::testing::IsEmpty());
        const auto soon = std::chrono::steady_clock::now() + patience;
        EXPECT_TRUE(tree_.kill_all(top_, soon));
        EXPECT_TRUE(tree_.wait_empty(top_, soon));
        EXPECT_TRUE(tree_.remove(top_, soon));
    }

    fake::outcome call(gantry_op_fn op, const std::string& request) {
        return plugin_->wait(plugin_->begin(op, {request}, patience), patience);
    }
    json::value ok(gantry_op_fn op, const std::string& request) {
        const auto end = call(op, request);
        EXPECT_TRUE(end.ok()) << end.error.message;
        return end.ok() ? *base::parse_json(end.bytes, "reply") : json::value();
    }
    std::string ensure(const std::string& uid, const std::string& qos, const std::string& resources = "{}") {
        const auto reply = ok(table_->ensure_pod,
                              R"({"uid": ")" + uid + R"(", "qos": ")" + qos + R"(", "resources": )" + resources + "}");
        return reply.is_object() ? std::string(reply.at("cgroupParent").as_string()) : std::string();
    }
    void remove(const std::string& uid) { ok(table_->remove_pod, R"({"uid": ")" + uid + "\"}"); }

    bool v2() const { return tree_.version() == cgroup::version::v2; }
    std::string file(const std::string& group, const char* controller, const char* v1, const char* v2_name) const {
        const auto text = cgroup::read_control(tree_.directory(group, controller) + "/" + (v2() ? v2_name : v1));
        return text ? *text : text.error().message;
    }
    std::string shares(const std::string& group) const { return file(group, "cpu", "cpu.shares", "cpu.weight"); }
    std::string as_shares(std::uint64_t value) const {
        return std::to_string(v2() ? cgroup::weight_of_shares(value) : value);
    }

    const std::string instance_ = "t" + std::to_string(::getpid());
    const std::string top_ = "/gantry-" + instance_;
    const std::string pods_ = top_ + "/kubepods";
    cgroup::hierarchy tree_ = open_tree();
    fake::host host_;
    std::optional<fake::plugin> plugin_;
    const gantry_resources* table_ = nullptr;
};

class bounded_node_linux_plugin : public node_linux_plugin {
protected:
    bounded_node_linux_plugin()
        : node_linux_plugin(
              R"({"systemReserved": {"cpu": "100m", "memory": "512Mi", "pid": "100"}, "podPidsLimit": 64})") {}
};

pid_t sleeper_in(const cgroup::hierarchy& tree, const std::string& group) {
    const pid_t pid = ::fork();
    if (pid == 0)
        for (;;) ::pause();
    const auto attached = tree.attach(group, pid);
    EXPECT_TRUE(attached) << attached.error().message;
    return pid;
}

} // namespace

TEST_F(node_linux_plugin, places_and_limits_pods_by_quality_of_service) {
    EXPECT_EQ(
        ensure("g", "Guaranteed",
               R"({"cpuRequestMilli": 500, "cpuLimitMilli": 500, "memoryRequest": 67108864, "memoryLimit": 67108864})"),
        pods_ + "/podg");
    EXPECT_EQ(ensure("b", "Burstable", R"({"cpuRequestMilli": 250, "memoryRequest": 1000})"),
              pods_ + "/burstable/podb");
    EXPECT_EQ(ensure("e", "BestEffort"), pods_ + "/besteffort/pode");

    EXPECT_EQ(shares(pods_ + "/podg"), as_shares(512));
    EXPECT_EQ(file(pods_ + "/podg", "memory", "memory.limit_in_bytes", "memory.max"), "67108864");
    EXPECT_EQ(file(pods_ + "/podg", "cpu", "cpu.cfs_quota_us", "cpu.max"), v2() ? "50000 100000" : "50000");
    EXPECT_EQ(shares(pods_ + "/burstable/podb"), as_shares(256));
    EXPECT_EQ(file(pods_ + "/burstable/podb", "cpu", "cpu.cfs_quota_us", "cpu.max"), v2() ? "max 100000" : "-1");
    EXPECT_EQ(shares(pods_ + "/besteffort/pode"), as_shares(2));
    EXPECT_EQ(shares(pods_ + "/besteffort"), as_shares(2));
}

TEST_F(node_linux_plugin, brings_a_pod_up_to_date_and_lifts_what_is_gone) {
    const std::string group = pods_ + "/burstable/podb";
    ensure("b", "Burstable",
           R"({"cpuRequestMilli": 100, "cpuLimitMilli": 200, "memoryLimit": 33554432, "pidsLimit": 10})");
    EXPECT_EQ(file(group, "pids", "pids.max", "pids.max"), "10");
    ensure("b", "Burstable", R"({"cpuRequestMilli": 300})");
    EXPECT_EQ(shares(group), as_shares(307));
    EXPECT_EQ(file(group, "cpu", "cpu.cfs_quota_us", "cpu.max"), v2() ? "max 100000" : "-1");
    EXPECT_EQ(file(group, "pids", "pids.max", "pids.max"), "max");
    if (v2()) {
        EXPECT_EQ(file(group, "memory", "", "memory.max"), "max");
    }
}

TEST_F(node_linux_plugin, the_burstable_tier_weighs_what_its_pods_request) {
    ensure("1", "Burstable", R"({"cpuRequestMilli": 250})");
    EXPECT_EQ(shares(pods_ + "/burstable"), as_shares(256));
    ensure("2", "Burstable", R"({"cpuRequestMilli": 1000})");
    EXPECT_EQ(shares(pods_ + "/burstable"), as_shares(1280));
    remove("1");
    EXPECT_EQ(shares(pods_ + "/burstable"), as_shares(1024));
    remove("2");
    EXPECT_EQ(shares(pods_ + "/burstable"), as_shares(2));
}

TEST_F(node_linux_plugin, a_restart_finds_the_pods_and_their_weight) {
    ensure("1", "Burstable", R"({"cpuRequestMilli": 1000})");
    ensure("2", "Guaranteed");
    plugin_.reset();
    fake::host again({.node_instance = instance_});
    fake::plugin second(again, gantry_plugin_main_node_linux());
    ASSERT_TRUE(second.start().ok());
    const auto* table = second.capability<gantry_resources>(GANTRY_RESOURCES);
    const auto listed = second.call(table->list_pods, {"{}"});
    EXPECT_EQ(*base::parse_json(listed.bytes, "reply"),
              (json::value{{"pods",
                            {{{"uid", "1"}, {"cgroupParent", pods_ + "/burstable/pod1"}},
                             {{"uid", "2"}, {"cgroupParent", pods_ + "/pod2"}}}}}));
    ASSERT_TRUE(
        second.call(table->ensure_pod, {R"({"uid": "3", "qos": "Burstable", "resources": {"cpuRequestMilli": 1000}})"})
            .ok());
    EXPECT_NEAR(std::stod(shares(pods_ + "/burstable")), std::stod(as_shares(2048)), v2() ? 1 : 3);
}

TEST_F(node_linux_plugin, kills_what_is_left_in_a_removed_pod) {
    const std::string group = ensure("1", "BestEffort");
    ASSERT_TRUE(tree_.create(group + "/container", {}));
    const pid_t pid = sleeper_in(tree_, group + "/container");
    remove("1");
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_FALSE(tree_.exists(group));
    remove("1");
    remove("never-there");
    EXPECT_EQ(ok(table_->list_pods, "{}"), (json::value{{"pods", json::array()}}));
}

TEST_F(node_linux_plugin, leaves_other_instances_alone) {
    const std::string other = "/gantry-other" + instance_;
    ASSERT_TRUE(tree_.create(other + "/kubepods/pod1", {}));
    ensure("1", "Guaranteed");
    remove("1");
    EXPECT_EQ(ok(table_->list_pods, "{}"), (json::value{{"pods", json::array()}}));
    EXPECT_TRUE(tree_.exists(other + "/kubepods/pod1"));
    EXPECT_TRUE(tree_.remove(other, std::chrono::steady_clock::now() + 5s));
}

TEST_F(node_linux_plugin, tells_what_pods_and_node_use) {
    const std::string group = ensure("1", "Burstable", R"({"cpuRequestMilli": 10})");
    const pid_t pid = sleeper_in(tree_, group);
    const auto all = ok(table_->stats, "{}");
    EXPECT_GT(all.at("node").at("cpuNanos").to_number<double>(), 0);
    EXPECT_GT(all.at("node").at("memoryWorkingSet").to_number<double>(), 0);
    EXPECT_GT(all.at("node").at("pids").to_number<double>(), 1);
    const auto one = ok(table_->stats, R"({"uid": "1"})").at("pods").as_array();
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(one[0].at("uid"), "1");
    EXPECT_EQ(one[0].at("pids"), 1);
    EXPECT_EQ(one[0].at("oomKills"), 0);
    const auto nobody = call(table_->stats, R"({"uid": "2"})");
    EXPECT_EQ(nobody.error.code, GANTRY_NOT_FOUND);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

TEST_F(node_linux_plugin, tells_the_capacity) {
    const auto reply = ok(table_->capacity, "{}");
    EXPECT_EQ(reply.at("capacity").at("cpuMilli"), ::sysconf(_SC_NPROCESSORS_ONLN) * 1000);
    EXPECT_EQ(reply.at("capacity").at("memory"), ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE));
    EXPECT_EQ(reply.at("capacity").at("pods"), 110);
    EXPECT_LT(reply.at("allocatable").at("memory").as_int64(), reply.at("capacity").at("memory").as_int64());
    EXPECT_EQ(reply.at("cgroup"), (json::value{{"version", v2() ? 2 : 1}, {"driver", "cgroupfs"}}));
}

TEST_F(node_linux_plugin, refuses_requests_that_make_no_sense) {
    for (const auto* request : {"", "{}", "nonsense", R"({"uid": "../x", "qos": "Burstable"})", R"({"uid": "1"})"}) {
        const auto end = call(table_->ensure_pod, request);
        EXPECT_EQ(end.error.code, GANTRY_INVALID) << request;
    }
    EXPECT_EQ(call(table_->remove_pod, R"({"uid": ".."})").ok(), true); // a name, not a path
    EXPECT_TRUE(tree_.exists("/"));
}

TEST_F(node_linux_plugin, serves_many_pods_at_once) {
    std::vector<gantry_op> ops;
    for (int i = 0; i < 40; ++i)
        ops.push_back(plugin_->begin(
            table_->ensure_pod,
            {R"({"uid": "p)" + std::to_string(i) + R"(", "qos": "Burstable", "resources": {"cpuRequestMilli": 10}})"}));
    for (const auto op : ops) EXPECT_TRUE(plugin_->wait(op, patience).ok());
    EXPECT_EQ(shares(pods_ + "/burstable"), as_shares(409));
    EXPECT_EQ(ok(table_->list_pods, "{}").at("pods").as_array().size(), 40u);
    ops.clear();
    for (int i = 0; i < 40; ++i)
        ops.push_back(plugin_->begin(table_->remove_pod, {R"({"uid": "p)" + std::to_string(i) + "\"}"}));
    for (const auto op : ops) EXPECT_TRUE(plugin_->wait(op, patience).ok());
    EXPECT_EQ(shares(pods_ + "/burstable"), as_shares(2));
}

TEST_F(bounded_node_linux_plugin, kubepods_gets_what_is_not_reserved) {
    const std::string group = ensure("1", "BestEffort");
    const std::int64_t memory = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE) - (512 << 20);
    EXPECT_EQ(file(pods_, "memory", "memory.limit_in_bytes", "memory.max"), std::to_string(memory));
    EXPECT_EQ(shares(pods_), as_shares(cgroup::shares_of_milli(::sysconf(_SC_NPROCESSORS_ONLN) * 1000 - 100)));
    EXPECT_NE(file(pods_, "pids", "pids.max", "pids.max"), "max");
    EXPECT_EQ(file(group, "pids", "pids.max", "pids.max"), "64");
}

} // namespace gantry::node_linux
