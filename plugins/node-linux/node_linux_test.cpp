// The pure parts: config, requests, limits, capacity.
#include <gtest/gtest.h>

#include "plugins/common/cgroup/units.hpp"
#include "plugins/node-linux/capacity.hpp"
#include "plugins/node-linux/pods.hpp"

namespace gantry::node_linux {

TEST(node_linux_config, an_empty_config_is_a_kubelets_defaults) {
    const auto c = parse_config("{}");
    ASSERT_TRUE(c);
    EXPECT_EQ(c->max_pods, 110);
    EXPECT_EQ(c->pod_pids_limit, -1);
    EXPECT_EQ(c->memory_eviction.of(1 << 30), 100 << 20);
    EXPECT_EQ(c->storage_eviction.of(1000), 100);
    EXPECT_EQ(c->cpu_period_us, 100'000u);
    EXPECT_TRUE(c->enforce_allocatable);
}

TEST(node_linux_config, reads_every_member) {
    const auto c =
        parse_config(R"({"cgroupRoot": "/edge", "systemReserved": {"cpu": "500m", "memory": "1Gi", "pid": "100"},
        "kubeReserved": {"cpu": "0.25", "memory": "64Mi", "ephemeral-storage": "1G"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "2Gi"}, "enforceNodeAllocatable": ["none"],
        "maxPods": 20, "podsPerCore": 4, "podPidsLimit": 512, "cpuCFSQuota": false, "cpuCFSQuotaPeriod": "5ms"})");
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->cgroup_root, "/edge");
    EXPECT_EQ(c->reserved.cpu_milli, 750);
    EXPECT_EQ(c->reserved.memory, (std::int64_t{1} << 30) + (64 << 20));
    EXPECT_EQ(c->reserved.ephemeral_storage, 1'000'000'000);
    EXPECT_EQ(c->reserved.pids, 100);
    EXPECT_EQ(c->memory_eviction.of(1000), 50);
    EXPECT_EQ(c->storage_eviction.of(1000), std::int64_t{2} << 30);
    EXPECT_FALSE(c->enforce_allocatable);
    EXPECT_EQ(c->max_pods, 20);
    EXPECT_EQ(c->pods_per_core, 4);
    EXPECT_EQ(c->pod_pids_limit, 512);
    EXPECT_FALSE(c->cpu_quota);
    EXPECT_EQ(c->cpu_period_us, 5000u);
}

TEST(node_linux_config, names_member_and_value_of_a_fault) {
    EXPECT_NE(parse_config(R"({"systemReserved": {"cpu": "-1"}})").error().message.find("systemReserved.cpu: \"-1\""),
              std::string::npos);
    EXPECT_NE(
        parse_config(R"({"kubeReserved": {"memory": "much"}})").error().message.find("kubeReserved.memory: \"much\""),
        std::string::npos);
    for (const auto* bad : {"101%", "-1%", "x%", "%", "nan%"})
        EXPECT_FALSE(parse_config(R"({"evictionHard": {"memory.available": ")" + std::string(bad) + "\"}}")) << bad;
    for (const auto* bad : {"0", "100", "2s", "0.5ms", "ms", "100 ms", "nanms"})
        EXPECT_FALSE(parse_config(R"({"cpuCFSQuotaPeriod": ")" + std::string(bad) + "\"}")) << bad;
    EXPECT_FALSE(parse_config(R"({"maxPods": "many"})"));
}

TEST(node_linux_pods, reads_a_request) {
    const auto pod = parse_pod_request(R"({"uid": "a-1", "qos": "Burstable", "resources": {"cpuRequestMilli": 250,
        "memoryLimit": 1048576, "cpuLimitMilli": -1}})");
    ASSERT_TRUE(pod) << pod.error().message;
    EXPECT_EQ(pod->uid, "a-1");
    EXPECT_EQ(pod->qos, qos::burstable);
    EXPECT_EQ(pod->cpu_request_milli, 250);
    EXPECT_EQ(pod->cpu_limit_milli, -1);
    EXPECT_EQ(pod->memory_limit, 1 << 20);
    EXPECT_EQ(pod->pids_limit, -1);
}

TEST(node_linux_pods, refuses_uids_that_are_no_directory_names) {
    for (const auto* uid : {"", "a/b", "../x", "a b", "a\\nb"})
        EXPECT_FALSE(parse_uid(R"({"uid": ")" + std::string(uid) + "\"}")) << uid;
    EXPECT_FALSE(parse_uid("{}"));
    EXPECT_FALSE(parse_uid(R"({"uid": 5})"));
    EXPECT_FALSE(parse_uid("[]"));
    EXPECT_FALSE(parse_uid(R"({"uid": ")" + std::string(201, 'a') + "\"}"));
    EXPECT_FALSE(parse_pod_request(R"({"uid": "a", "qos": "Best"})"));
    EXPECT_FALSE(parse_pod_request(R"({"uid": "a", "qos": "Burstable", "resources": {"memoryLimit": -2}})"));
    EXPECT_FALSE(parse_pod_request(R"({"uid": "a", "qos": "Burstable", "resources": {"memoryLimit": "1Gi"}})"));
}

TEST(node_linux_pods, places_pods_by_quality_of_service) {
    const paths p("/root", "main");
    EXPECT_EQ(p.pod(qos::guaranteed, "1"), "/root/gantry-main/kubepods/pod1");
    EXPECT_EQ(p.pod(qos::burstable, "1"), "/root/gantry-main/kubepods/burstable/pod1");
    EXPECT_EQ(p.pod(qos::best_effort, "1"), "/root/gantry-main/kubepods/besteffort/pod1");
    EXPECT_EQ(uid_of_group("podabc"), "abc");
    EXPECT_EQ(uid_of_group("burstable"), "");
    EXPECT_EQ(uid_of_group("pod"), "");
}

TEST(node_linux_pods, limits_follow_the_quality_of_service) {
    const config settings;
    const auto guaranteed = pod_limits({.uid = "1",
                                        .qos = qos::guaranteed,
                                        .cpu_request_milli = 500,
                                        .cpu_limit_milli = 500,
                                        .memory_request = 1 << 20,
                                        .memory_limit = 1 << 20},
                                       settings);
    EXPECT_EQ(guaranteed.cpu_shares, 512u);
    EXPECT_EQ(guaranteed.cpu_quota_us, 50'000);
    EXPECT_EQ(guaranteed.memory_max, 1 << 20);
    EXPECT_EQ(guaranteed.pids_max, -1);
    const auto burstable = pod_limits({.uid = "1", .qos = qos::burstable, .cpu_request_milli = 100}, settings);
    EXPECT_EQ(burstable.cpu_shares, 102u);
    EXPECT_EQ(burstable.cpu_quota_us, cgroup::unlimited);
    EXPECT_EQ(burstable.memory_max, -1);
    const auto best_effort =
        pod_limits({.uid = "1", .qos = qos::best_effort, .cpu_limit_milli = 5, .memory_limit = 5}, settings);
    EXPECT_EQ(best_effort.cpu_shares, 2u);
    EXPECT_EQ(best_effort.cpu_quota_us, -1);
    EXPECT_EQ(best_effort.memory_max, -1);
}

TEST(node_linux_pods, the_smaller_pids_limit_holds_and_quota_can_be_off) {
    config settings;
    settings.pod_pids_limit = 100;
    settings.cpu_quota = false;
    EXPECT_EQ(pod_limits({.uid = "1"}, settings).pids_max, 100);
    EXPECT_EQ(pod_limits({.uid = "1", .pids_limit = 50}, settings).pids_max, 50);
    EXPECT_EQ(pod_limits({.uid = "1", .pids_limit = 500}, settings).pids_max, 100);
    EXPECT_EQ(pod_limits({.uid = "1", .qos = qos::guaranteed, .cpu_limit_milli = 500}, settings).cpu_quota_us, -1);
}

TEST(node_linux_capacity, reads_meminfo) {
    const auto info =
        parse_meminfo("MemTotal:       16000000 kB\nMemFree:         4000000 kB\nInactive(file):  1000000 kB\n"
                      "Inactive:  7 kB\nHugetlb:    2048 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\nHugePages_Total: 1\n");
    EXPECT_EQ(info.total, 16'000'000 * std::int64_t{1024});
    EXPECT_EQ(info.used(), 12'000'000 * std::int64_t{1024});
    EXPECT_EQ(info.working_set(), 11'000'000 * std::int64_t{1024});
    EXPECT_EQ(info.huge_pages, 2048 * 1024);
    EXPECT_EQ(info.swap_total - info.swap_free, 6 * 1024);
    EXPECT_EQ(parse_meminfo("nonsense\n\n").total, 0);
}

TEST(node_linux_capacity, allocatable_is_what_is_neither_reserved_nor_kept_for_eviction) {
    const machine m{
        .cpu_milli = 4000, .memory = 8LL << 30, .huge_pages = 1LL << 30, .ephemeral_storage = 100'000, .pids = 1000};
    config c;
    c.reserved = {.cpu_milli = 500, .memory = 1LL << 30, .ephemeral_storage = 5000, .pids = 100};
    const auto whole = total(m, c);
    EXPECT_EQ(whole.cpu_milli, 4000);
    EXPECT_EQ(whole.memory, 8LL << 30);
    EXPECT_EQ(whole.pods, 110);
    const auto left = allocatable(m, c);
    EXPECT_EQ(left.cpu_milli, 3500);
    EXPECT_EQ(left.memory, (6LL << 30) - (100 << 20));
    EXPECT_EQ(left.ephemeral_storage, 100'000 - 10'000 - 5000);
    const auto bounds = enforced(m, c);
    EXPECT_EQ(bounds.memory, 7LL << 30);
    EXPECT_EQ(bounds.pids, 900);
}

TEST(node_linux_capacity, nothing_falls_below_zero_and_cores_bound_pods) {
    const machine m{.cpu_milli = 2000, .memory = 1 << 20, .huge_pages = 0, .ephemeral_storage = 10, .pids = 1000};
    config c;
    c.reserved = {.cpu_milli = 9000, .memory = 1LL << 40, .ephemeral_storage = 1LL << 40, .pids = 0};
    c.pods_per_core = 10;
    const auto left = allocatable(m, c);
    EXPECT_EQ(left.cpu_milli, 0);
    EXPECT_EQ(left.memory, 0);
    EXPECT_EQ(left.ephemeral_storage, 0);
    EXPECT_EQ(left.pods, 20);
    EXPECT_EQ(enforced(m, c).pids, -1);
}

} // namespace gantry::node_linux
