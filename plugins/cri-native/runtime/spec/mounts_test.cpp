#include "plugins/cri-native/runtime/spec/mounts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cri_native {
namespace {

namespace cri = runtime::v1;
using launch::mount_kind;

const launch::mount_plan* at(const std::vector<launch::mount_plan>& mounts, const std::string& target) {
    const launch::mount_plan* found = nullptr;
    for (const auto& mount : mounts)
        if (mount.target == target) {
            EXPECT_EQ(found, nullptr) << target << " is mounted twice";
            found = &mount;
        }
    return found;
}

cri::Mount* add(cri::ContainerConfig& config, const std::string& host, const std::string& container) {
    auto* mount = config.add_mounts();
    mount->set_host_path(host);
    mount->set_container_path(container);
    return mount;
}

TEST(clean_path, stays_below_the_root) {
    EXPECT_EQ(clean_path(""), "/");
    EXPECT_EQ(clean_path("a/./b//c/"), "/a/b/c");
    EXPECT_EQ(clean_path("/../../etc/../x"), "/x");
}

TEST(container_mounts, gives_every_container_its_file_systems) {
    const auto mounts = container_mounts({}, {.etc_dir = "/run/p/etc"});
    ASSERT_TRUE(mounts);
    for (const auto* target : {"/proc", "/dev", "/dev/pts", "/dev/mqueue", "/dev/shm", "/sys", "/sys/fs/cgroup",
                               "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"})
        EXPECT_NE(at(*mounts, target), nullptr) << target;
    EXPECT_TRUE(at(*mounts, "/sys")->readonly);
    EXPECT_TRUE(at(*mounts, "/sys/fs/cgroup")->readonly);
    EXPECT_TRUE(at(*mounts, "/proc")->noexec && at(*mounts, "/proc")->nosuid && at(*mounts, "/proc")->nodev);
    EXPECT_FALSE(at(*mounts, "/dev")->nodev);
    EXPECT_EQ(at(*mounts, "/etc/hosts")->source, "/run/p/etc/hosts");
    EXPECT_FALSE(at(*mounts, "/etc/hosts")->readonly);
    EXPECT_EQ(at(*mounts, "/dev/shm")->kind, mount_kind::shm);
}

TEST(container_mounts, follows_the_security_context) {
    const auto mounts = container_mounts({}, {.privileged = true, .readonly_rootfs = true, .host_ipc = true});
    EXPECT_FALSE(at(*mounts, "/sys")->readonly);
    EXPECT_TRUE(at(*mounts, "/etc/hosts")->readonly);
    EXPECT_EQ(at(*mounts, "/dev/shm")->kind, mount_kind::bind);
}

TEST(container_mounts, lets_the_request_replace_ours) {
    cri::ContainerConfig config;
    add(config, "/pods/hosts", "/etc//hosts");
    add(config, "/dev/shm/big", "/dev/shm/");
    const auto mounts = container_mounts(config, {.etc_dir = "/e"});
    EXPECT_EQ(at(*mounts, "/etc/hosts")->source, "/pods/hosts");
    EXPECT_EQ(at(*mounts, "/dev/shm")->source, "/dev/shm/big");
}

TEST(container_mounts, translates_modes) {
    cri::ContainerConfig config;
    add(config, "/a", "/a")->set_readonly(true);
    add(config, "/b", "/b")->set_propagation(cri::PROPAGATION_BIDIRECTIONAL);
    auto* recursive = add(config, "/c", "/c");
    recursive->set_readonly(true);
    recursive->set_recursive_read_only(true);
    const auto mounts = container_mounts(config, {});
    EXPECT_TRUE(at(*mounts, "/a")->readonly);
    EXPECT_EQ(at(*mounts, "/a")->propagation, launch::mount_propagation::rprivate);
    EXPECT_EQ(at(*mounts, "/b")->propagation, launch::mount_propagation::rshared);
    EXPECT_TRUE(at(*mounts, "/c")->recursive_readonly);
}

TEST(container_mounts, refuses_what_cannot_be) {
    const auto refused = [](auto change) {
        cri::ContainerConfig config;
        change(*add(config, "/a", "/a"));
        return container_mounts(config, {});
    };
    EXPECT_FALSE(refused([](cri::Mount& m) { m.set_host_path("relative"); }));
    EXPECT_FALSE(refused([](cri::Mount& m) { m.set_container_path("/.."); }));
    EXPECT_FALSE(refused([](cri::Mount& m) { m.set_container_path(""); }));
    const auto writable = refused([](cri::Mount& m) { m.set_recursive_read_only(true); });
    ASSERT_FALSE(writable);
    EXPECT_THAT(writable.error().message, testing::StartsWith("RROUnsupported"));
    EXPECT_FALSE(refused([](cri::Mount& m) {
        m.set_readonly(true);
        m.set_recursive_read_only(true);
        m.set_propagation(cri::PROPAGATION_HOST_TO_CONTAINER);
    }));
}

} // namespace
} // namespace gantry::cri_native
