#include "core/pod/resources.hpp"

#include "core/pod/pod_fixture.hpp"

namespace gantry::core {
namespace {

using testing::pod_of;

model::pod with(const std::string& resources, const std::string& more = "") {
    return pod_of(R"({"containers": [{"name": "c", "image": "i:1", "resources": )" + resources + "}" + more + "]}");
}

TEST(pod_amounts, are_those_of_a_real_kubelet) {
    // Cgroup values that a kubelet gave the same pods.
    const auto best_effort = pod_of(R"({"containers": [{"name": "c", "image": "i:1"}]})");
    EXPECT_EQ(qos_class(best_effort.spec), "BestEffort");
    EXPECT_EQ(cpu_shares(pod_cgroup(best_effort.spec).cpu_request_milli), 2);

    const auto burstable = with(R"({"requests": {"cpu": "250m", "memory": "32Mi"}})");
    EXPECT_EQ(qos_class(burstable.spec), "Burstable");
    EXPECT_EQ(cpu_shares(pod_cgroup(burstable.spec).cpu_request_milli), 256);
    EXPECT_FALSE(pod_cgroup(burstable.spec).cpu_limit_milli);
    EXPECT_FALSE(pod_cgroup(burstable.spec).memory_limit);

    const auto guaranteed = with(R"({"limits": {"cpu": "300m", "memory": "64Mi"}})");
    EXPECT_EQ(qos_class(guaranteed.spec), "Guaranteed");
    EXPECT_EQ(cpu_shares(pod_cgroup(guaranteed.spec).cpu_request_milli), 307);
    EXPECT_EQ(cpu_quota(*pod_cgroup(guaranteed.spec).cpu_limit_milli), 30000);
    EXPECT_EQ(pod_cgroup(guaranteed.spec).memory_limit, 67108864);

    const auto memory_only = with(R"({"limits": {"memory": "64Mi"}})");
    EXPECT_EQ(qos_class(memory_only.spec), "Burstable");
    EXPECT_FALSE(pod_cgroup(memory_only.spec).cpu_limit_milli);
    EXPECT_EQ(pod_cgroup(memory_only.spec).memory_limit, 67108864);

    const auto two = with(R"({"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}})",
                          R"(, {"name": "d", "image": "i:1", "resources": {"limits": {"cpu": "300m", "memory": "32Mi"}}})");
    EXPECT_EQ(cpu_shares(pod_cgroup(two.spec).cpu_request_milli), 409);
    EXPECT_EQ(cpu_quota(*pod_cgroup(two.spec).cpu_limit_milli), 50000);
    EXPECT_EQ(pod_cgroup(two.spec).memory_limit, 100663296);
}

TEST(pod_amounts, leave_the_pod_unlimited_when_one_container_is) {
    const auto pod = with(R"({"limits": {"cpu": "100m", "memory": "32Mi"}})", R"(, {"name": "d", "image": "i:1"})");
    EXPECT_EQ(qos_class(pod.spec), "Burstable");
    EXPECT_FALSE(pod_cgroup(pod.spec).cpu_limit_milli);
    EXPECT_FALSE(pod_cgroup(pod.spec).memory_limit);
}

TEST(pod_amounts, take_the_larger_of_init_and_regular_containers) {
    const auto pod = pod_of(R"({
        "initContainers": [{"name": "i", "image": "i:1", "resources": {"limits": {"cpu": "150m", "memory": "128Mi"}}}],
        "containers": [{"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "50m", "memory": "64Mi"}}}]})");
    EXPECT_EQ(qos_class(pod.spec), "Guaranteed");
    EXPECT_EQ(cpu_shares(pod_cgroup(pod.spec).cpu_request_milli), 153);
    EXPECT_EQ(cpu_quota(*pod_cgroup(pod.spec).cpu_limit_milli), 15000);
    EXPECT_EQ(pod_cgroup(pod.spec).memory_limit, 134217728);
}

TEST(pod_amounts, count_sidecars_beside_everything_after_them) {
    const auto pod = pod_of(R"({
        "initContainers": [
            {"name": "a", "image": "i:1", "resources": {"requests": {"cpu": "1"}}},
            {"name": "s", "image": "i:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "300m"}}},
            {"name": "b", "image": "i:1", "resources": {"requests": {"cpu": "800m"}}}],
        "containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "500m"}}}],
        "overhead": {"cpu": "10m"}})");
    EXPECT_EQ(amount(pod_requests(pod.spec), "cpu").milli(), 1110);
}

TEST(pod_amounts, convert_cpu_as_the_kernel_wants_it) {
    EXPECT_EQ(cpu_shares(0), 2);
    EXPECT_EQ(cpu_shares(1), 2);
    EXPECT_EQ(cpu_shares(1000), 1024);
    EXPECT_EQ(cpu_shares(1'000'000'000'000), 262144);
    EXPECT_EQ(cpu_quota(0), 0);
    EXPECT_EQ(cpu_quota(1), 1000);
    EXPECT_EQ(cpu_quota(2500), 250000);
}

TEST(oom_score, protects_by_class_and_request) {
    const std::int64_t node = 16ll << 30;
    const auto score = [&](const model::pod& p) { return oom_score_adj(p.spec, p.spec.containers[0], node); };
    EXPECT_EQ(score(pod_of(R"({"containers": [{"name": "c", "image": "i:1"}]})")), 1000);
    EXPECT_EQ(score(with(R"({"limits": {"cpu": "1", "memory": "1Gi"}})")), -997);
    EXPECT_EQ(score(with(R"({"requests": {"memory": "4Gi"}})")), 750);
    EXPECT_EQ(score(with(R"({"requests": {"memory": "1Ki"}})")), 999);
    EXPECT_EQ(score(with(R"({"requests": {"memory": "64Gi"}})")), 3);
    auto critical = pod_of(R"({"priority": 2000001000, "containers": [{"name": "c", "image": "i:1"}]})");
    EXPECT_EQ(score(critical), -997);
}

} // namespace
} // namespace gantry::core
