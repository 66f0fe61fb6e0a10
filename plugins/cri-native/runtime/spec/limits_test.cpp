#include "plugins/cri-native/runtime/spec/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/common/cgroup/units.hpp"

namespace gantry::cri_native {
namespace {

namespace cri = runtime::v1;

TEST(cgroup_limits, leaves_zeros_alone) {
    const auto limits = cgroup_limits({});
    ASSERT_TRUE(limits);
    EXPECT_FALSE(limits->cpu_shares || limits->cpu_quota_us || limits->cpu_period_us || limits->memory_max ||
                 limits->swap_max || limits->cpuset_cpus || limits->cpuset_mems);
    EXPECT_TRUE(limits->hugetlb.empty() && limits->unified.empty());
}

TEST(cgroup_limits, passes_cpu_and_memory) {
    cri::LinuxContainerResources resources;
    resources.set_cpu_shares(512);
    resources.set_cpu_quota(50000);
    resources.set_cpu_period(100000);
    resources.set_memory_limit_in_bytes(64 << 20);
    resources.set_cpuset_cpus("0-1");
    auto* pages = resources.add_hugepage_limits();
    pages->set_page_size("2MB");
    pages->set_limit(4 << 20);
    const auto limits = cgroup_limits(resources);
    ASSERT_TRUE(limits);
    EXPECT_EQ(limits->cpu_shares, 512u);
    EXPECT_EQ(limits->cpu_quota_us, 50000);
    EXPECT_EQ(limits->cpu_period_us, 100000u);
    EXPECT_EQ(limits->memory_max, 64 << 20);
    EXPECT_EQ(limits->cpuset_cpus, "0-1");
    EXPECT_EQ(limits->hugetlb.at("2MB"), 4 << 20);
}

TEST(cgroup_limits, forbids_swap_unless_asked_for) {
    cri::LinuxContainerResources resources;
    resources.set_memory_limit_in_bytes(64 << 20);
    EXPECT_EQ(cgroup_limits(resources)->swap_max, 0);
    resources.set_memory_swap_limit_in_bytes(96 << 20);
    EXPECT_EQ(cgroup_limits(resources)->swap_max, 32 << 20);
    resources.set_memory_swap_limit_in_bytes(-1);
    EXPECT_EQ(cgroup_limits(resources)->swap_max, cgroup::unlimited);
    resources.set_memory_swap_limit_in_bytes(32 << 20);
    EXPECT_FALSE(cgroup_limits(resources));
}

TEST(cgroup_limits, says_the_least_memory_that_works) {
    cri::LinuxContainerResources resources;
    resources.set_memory_limit_in_bytes(1000);
    const auto limits = cgroup_limits(resources);
    ASSERT_FALSE(limits);
    EXPECT_EQ(limits.error().code, code::invalid);
    EXPECT_THAT(limits.error().message, testing::HasSubstr(std::to_string(lowest_memory_limit)));
}

TEST(cgroup_limits, refuses_negative_figures) {
    cri::LinuxContainerResources shares, quota, memory;
    shares.set_cpu_shares(-2);
    quota.set_cpu_quota(-5);
    memory.set_memory_limit_in_bytes(-7);
    for (const auto* one : {&shares, &quota, &memory}) EXPECT_FALSE(cgroup_limits(*one));
}

TEST(merged_resources, keeps_what_an_update_leaves_out) {
    cri::LinuxContainerResources present, update;
    present.set_cpu_shares(100);
    present.set_memory_limit_in_bytes(1 << 20);
    present.add_hugepage_limits()->set_page_size("2MB");
    update.set_memory_limit_in_bytes(2 << 20);
    update.set_cpuset_cpus("1");
    const auto merged = merged_resources(present, update);
    EXPECT_EQ(merged.cpu_shares(), 100);
    EXPECT_EQ(merged.memory_limit_in_bytes(), 2 << 20);
    EXPECT_EQ(merged.cpuset_cpus(), "1");
    EXPECT_EQ(merged.hugepage_limits_size(), 1);
    update.add_hugepage_limits()->set_page_size("1GB");
    EXPECT_EQ(merged_resources(present, update).hugepage_limits_size(), 1);
}

} // namespace
} // namespace gantry::cri_native
