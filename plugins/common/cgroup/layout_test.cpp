#include "plugins/common/cgroup/layout.hpp"

#include <gtest/gtest.h>

namespace gantry::cgroup {

TEST(cgroup_layout, reads_a_v2_machine) {
    const auto found =
        parse_mountinfo("24 30 0:22 / /proc rw - proc proc rw\n"
                        "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    EXPECT_EQ(found.version(), version::v2);
    EXPECT_EQ(found.unified, "/sys/fs/cgroup");
    EXPECT_TRUE(found.v1.empty());
}

TEST(cgroup_layout, reads_a_hybrid_machine_with_joined_controllers) {
    const auto found =
        parse_mountinfo("40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
                        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
                        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory,release_agent=/x\n");
    EXPECT_EQ(found.version(), version::v1);
    EXPECT_EQ(found.unified, "/sys/fs/cgroup/unified");
    EXPECT_EQ(found.mount_of("cpuacct"), "/sys/fs/cgroup/cpu,cpuacct");
    EXPECT_EQ(found.mount_of("cpu"), "/sys/fs/cgroup/cpu,cpuacct");
    EXPECT_EQ(found.mount_of("memory"), "/sys/fs/cgroup/memory");
    EXPECT_EQ(found.mount_of("name=systemd"), "/sys/fs/cgroup/systemd");
    EXPECT_EQ(found.mount_of("pids"), "");
    EXPECT_EQ(found.v1.size(), 3u);
}

TEST(cgroup_layout, takes_each_hierarchy_once_and_prefers_a_mount_of_its_whole_tree) {
    const auto found = parse_mountinfo("1 0 0:1 /docker/abc /mnt/part rw - cgroup cgroup rw,memory\n"
                                       "2 0 0:1 / /mnt/whole rw - cgroup cgroup rw,memory\n"
                                       "3 0 0:1 / /mnt/again rw - cgroup cgroup rw,memory\n");
    ASSERT_EQ(found.v1.size(), 1u);
    EXPECT_EQ(found.v1[0], (v1_mount{{"memory"}, "/mnt/whole"}));
}

TEST(cgroup_layout, ignores_named_v1_hierarchies_of_a_v2_machine) {
    const auto found = parse_mountinfo("1 0 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n"
                                       "2 0 0:2 / /run/tracker rw - cgroup none rw,name=tracker\n");
    EXPECT_EQ(found.version(), version::v2);
    EXPECT_TRUE(found.v1.empty());
}

TEST(cgroup_layout, reads_escaped_paths_and_survives_broken_lines) {
    const auto found =
        parse_mountinfo("1 0 0:1 / /a\\040b\\134c rw - cgroup2 none rw\n\n1 2 3\n1 0 0:1 / /x rw -\n- - - -\n");
    EXPECT_EQ(found.unified, "/a b\\c");
}

TEST(cgroup_layout, finds_nothing_where_nothing_is_mounted) {
    const auto found = parse_mountinfo("24 30 0:22 / /proc rw - proc proc rw\n");
    EXPECT_TRUE(found.unified.empty());
    EXPECT_TRUE(found.v1.empty());
}

} // namespace gantry::cgroup
