#include "plugins/common/cgroup/limits.hpp"

#include <gtest/gtest.h>

namespace gantry::cgroup {

namespace {

std::string plan(version v, const limits& wanted) {
    const auto writes = plan_writes(v, wanted);
    if (!writes) return writes.error().message;
    std::string out;
    for (const auto& write : *writes) out += write.file + (write.optional ? "?" : "") + "=" + write.value + ";";
    return out;
}

} // namespace

TEST(cgroup_limits, nothing_wanted_writes_nothing) {
    EXPECT_EQ(plan(version::v1, {}), "");
    EXPECT_EQ(plan(version::v2, {}), "");
}

TEST(cgroup_limits, cpu) {
    const limits wanted{.cpu_shares = 1024, .cpu_quota_us = 50'000, .cpu_period_us = 100'000};
    EXPECT_EQ(plan(version::v1, wanted), "cpu.shares=1024;cpu.cfs_period_us=100000;cpu.cfs_quota_us=50000;");
    EXPECT_EQ(plan(version::v2, wanted), "cpu.weight=39;cpu.max=50000 100000;");
    EXPECT_EQ(plan(version::v1, {.cpu_quota_us = -1}), "cpu.cfs_period_us=100000;cpu.cfs_quota_us=-1;");
    EXPECT_EQ(plan(version::v2, {.cpu_quota_us = -1}), "cpu.max=max 100000;");
}

TEST(cgroup_limits, memory) {
    const limits wanted{
        .memory_max = 100, .memory_high = 90, .memory_min = 10, .memory_low = 20, .swap_max = 50, .oom_group = true};
    EXPECT_EQ(plan(version::v1, wanted),
              "memory.limit_in_bytes=100;memory.soft_limit_in_bytes=20;memory.memsw.limit_in_bytes?=150;");
    EXPECT_EQ(plan(version::v2, wanted),
              "memory.min=10;memory.low=20;memory.high=90;memory.max=100;memory.swap.max?=50;memory.oom.group?=1;");
    EXPECT_EQ(plan(version::v1, {.memory_max = 100, .swap_max = -1}),
              "memory.limit_in_bytes=100;memory.memsw.limit_in_bytes?=-1;");
    EXPECT_EQ(plan(version::v2, {.memory_max = -1}), "memory.max=max;");
}

TEST(cgroup_limits, pids_cpuset_and_huge_pages) {
    limits wanted{.pids_max = 7, .cpuset_cpus = "0-1", .cpuset_mems = "0"};
    wanted.hugetlb = {{"1GB", 1 << 30}, {"2MB", 0}};
    EXPECT_EQ(plan(version::v1, wanted),
              "cpuset.cpus=0-1;cpuset.mems=0;pids.max=7;hugetlb.1GB.limit_in_bytes=1073741824;hugetlb.1GB.rsvd.limit_"
              "in_bytes?="
              "1073741824;hugetlb.2MB.limit_in_bytes?=0;hugetlb.2MB.rsvd.limit_in_bytes?=0;");
    EXPECT_EQ(plan(version::v2, wanted),
              "cpuset.cpus=0-1;cpuset.mems=0;pids.max=7;hugetlb.1GB.max=1073741824;hugetlb.1GB.rsvd.max?="
              "1073741824;hugetlb.2MB.max?=0;hugetlb.2MB.rsvd.max?=0;");
    EXPECT_EQ(plan(version::v1, {.pids_max = -1}), "pids.max=max;");
}

TEST(cgroup_limits, raw_files_are_for_v2_and_for_resources_only) {
    EXPECT_EQ(plan(version::v2, {.unified = {{"memory.high", "1000"}}}), "memory.high=1000;");
    EXPECT_NE(plan(version::v1, {.unified = {{"memory.high", "1000"}}}).find("cgroup v1"), std::string::npos);
    for (const auto* file : {"cgroup.procs", "../memory.max", "memory/x.y", ".x", "x", ""})
        EXPECT_FALSE(plan_writes(version::v2, {.unified = {{file, "1"}}})) << file;
}

} // namespace gantry::cgroup
