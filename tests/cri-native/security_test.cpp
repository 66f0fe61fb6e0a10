// Who containers run as and what they may do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "tests/cri-native/one_pod.hpp"

namespace gantry::cri_native::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class confined : public one_pod {
protected:
    void TearDown() override { EXPECT_THAT(node_.misbehaviour(), IsEmpty()); }

    std::string output(const cri::ContainerConfig& config) {
        const auto id = node_.launch(pod_, config);
        EXPECT_TRUE(id) << (id ? "" : id.error().message);
        if (!id) return {};
        EXPECT_TRUE(node_.wait_exit(*id));
        return node_.log(*id);
    }
    static cri::LinuxContainerSecurityContext& security(cri::ContainerConfig& of) {
        return *of.mutable_linux()->mutable_security_context();
    }
};

TEST_F(confined, runs_as_the_user_of_the_request) {
    auto config = node_.shell("c", "id -u; id -g; id -G; echo $HOME");
    security(config).mutable_run_as_user()->set_value(1000);
    security(config).add_supplemental_groups(3000);
    EXPECT_EQ(output(config), "1000\n1000\n1000 2000 3000\n/home/app\n");
    auto named = node_.shell("d", "id -u");
    security(named).set_run_as_username("app");
    EXPECT_EQ(output(named), "1000\n");
    auto strict = node_.shell("e", "id -G");
    security(strict).mutable_run_as_user()->set_value(1000);
    security(strict).set_supplemental_groups_policy(cri::Strict);
    EXPECT_EQ(output(strict), "1000\n");
    auto unknown = node_.shell("f", "id -u; id -g; echo $HOME");
    security(unknown).mutable_run_as_user()->set_value(4242);
    EXPECT_EQ(output(unknown), "4242\n0\n/\n");
}

TEST_F(confined, refuses_users_that_the_image_does_not_have) {
    auto config = node_.shell("c", "id");
    security(config).set_run_as_username("ghost");
    const auto id = node_.create(pod_, config);
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().code, code::invalid);
    EXPECT_THAT(id.error().message, HasSubstr("\"ghost\""));
}

TEST_F(confined, has_the_default_capabilities_unless_told_otherwise) {
    EXPECT_EQ(output(node_.shell("c", "grep CapEff /proc/self/status")), "CapEff:\t00000000a80425fb\n");
    auto none = node_.shell("d", "grep CapEff /proc/self/status");
    security(none).mutable_capabilities()->add_drop_capabilities("ALL");
    security(none).mutable_capabilities()->add_add_capabilities("NET_BIND_SERVICE");
    EXPECT_EQ(output(none), "CapEff:\t0000000000000400\n");
    auto user = node_.shell("e", "grep -E 'CapEff|CapInh' /proc/self/status");
    security(user).mutable_run_as_user()->set_value(1000);
    EXPECT_EQ(output(user), "CapInh:\t0000000000000000\nCapEff:\t0000000000000000\n");
}

TEST_F(confined, runs_under_the_default_filter) {
    auto config = node_.shell("c", "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; unshare -U true; echo $?");
    security(config).mutable_seccomp()->set_profile_type(cri::SecurityProfile::RuntimeDefault);
    security(config).set_no_new_privs(true);
    const auto text = output(config);
    EXPECT_THAT(text, HasSubstr("NoNewPrivs:\t1\nSeccomp:\t2\n"));
    EXPECT_THAT(text, HasSubstr("\n1\n")); // unshare failed
    auto free = node_.shell("d", "grep '^Seccomp:' /proc/self/status");
    EXPECT_EQ(output(free), "Seccomp:\t0\n");
}

TEST_F(confined, runs_under_an_operators_filter) {
    const std::string profile = node_.dir() + "/profile.json";
    ASSERT_TRUE(base::write_file_atomic(profile, R"({"defaultAction":"SCMP_ACT_ALLOW",
        "syscalls":[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":28}]})"));
    auto config = node_.shell("c", "mkdir /x 2>&1");
    security(config).mutable_seccomp()->set_profile_type(cri::SecurityProfile::Localhost);
    security(config).mutable_seccomp()->set_localhost_ref(profile);
    EXPECT_THAT(output(config), HasSubstr("No space left on device"));
    config.mutable_metadata()->set_name("d");
    security(config).mutable_seccomp()->set_localhost_ref(node_.dir() + "/missing.json");
    const auto missing = node_.create(pod_, config);
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().message, HasSubstr("missing.json"));
    ASSERT_TRUE(base::write_file_atomic(profile, "{\"defaultAction\":\"PERHAPS\"}"));
    security(config).mutable_seccomp()->set_localhost_ref(profile);
    const auto broken = node_.create(pod_, config);
    ASSERT_FALSE(broken);
    EXPECT_THAT(broken.error().message, HasSubstr("PERHAPS"));
}

TEST_F(confined, sees_masked_and_readonly_paths) {
    auto config = node_.shell("c", "cat /proc/interrupts | wc -c; echo 1 > /proc/sys/net/ipv4/ip_forward");
    security(config).add_masked_paths("/proc/interrupts");
    security(config).add_masked_paths("/proc/no-such-file");
    security(config).add_readonly_paths("/proc/sys");
    const auto text = output(config);
    EXPECT_THAT(text, ::testing::StartsWith("0\n"));
    EXPECT_THAT(text, HasSubstr("Read-only file system"));
}

TEST_F(confined, has_a_readonly_root_when_asked) {
    auto config = node_.shell("c", "touch /x 2>&1; touch /dev/shm/y && echo shm; touch /data/z && echo data");
    security(config).set_readonly_rootfs(true);
    auto* mount = config.add_mounts();
    mount->set_host_path(node_.dir() + "/made/by/us");
    mount->set_container_path("/data");
    const auto text = output(config);
    EXPECT_THAT(text, HasSubstr("Read-only file system"));
    EXPECT_THAT(text, ::testing::EndsWith("shm\ndata\n"));
    EXPECT_EQ(::access((node_.dir() + "/made/by/us/z").c_str(), F_OK), 0);
}

TEST_F(confined, mounts_what_the_request_lists) {
    ASSERT_TRUE(base::make_dirs(node_.dir() + "/data", 0755));
    ASSERT_TRUE(base::write_file_atomic(node_.dir() + "/data/file", "content\n", 0644));
    auto config = node_.shell("c", "cat /ro/file /one; touch /ro/x 2>&1; touch /rw/y; cat /etc/hosts");
    const auto add = [&](const std::string& host, const std::string& inside, bool readonly) {
        auto* mount = config.add_mounts();
        mount->set_host_path(node_.dir() + host);
        mount->set_container_path(inside);
        mount->set_readonly(readonly);
    };
    add("/data", "/ro", true);
    add("/data", "/rw", false);
    add("/data/file", "/one", true);
    add("/data/file", "/etc/hosts", false);
    const auto text = output(config);
    EXPECT_THAT(text, ::testing::StartsWith("content\ncontent\n"));
    EXPECT_THAT(text, HasSubstr("Read-only file system"));
    EXPECT_THAT(text, ::testing::EndsWith("content\n"));
    EXPECT_EQ(::access((node_.dir() + "/data/y").c_str(), F_OK), 0);
}

TEST_F(confined, may_open_only_its_own_devices) {
    auto config =
        node_.shell("c", "echo x > /dev/null && echo null; mknod /tmp/kmsg c 1 11 && head -c1 /tmp/kmsg 2>&1; ls /dev");
    const auto text = output(config);
    EXPECT_THAT(text, HasSubstr("null\n"));
    EXPECT_THAT(text, HasSubstr("Operation not permitted"));
    EXPECT_THAT(text, Not(HasSubstr("kmsg\n")));
    auto with = node_.shell("d", "test -c /dev/random-numbers && head -c1 /dev/random-numbers | wc -c");
    auto* device = with.add_devices();
    device->set_host_path("/dev/hwrng");
    device->set_container_path("/dev/random-numbers");
    device->set_permissions("r");
    if (::access("/dev/hwrng", R_OK) == 0) {
        EXPECT_EQ(output(with), "1\n");
    }
}

TEST_F(confined, holds_everything_when_privileged) {
    auto config = node_.shell("c", "mount -t tmpfs none /tmp && echo mounted; touch /sys/fs/cgroup/x 2>/dev/null; ls "
                                   "/dev | wc -l; grep ^Seccomp: /proc/self/status");
    security(config).set_privileged(true);
    security(config).mutable_seccomp();
    security(config).add_masked_paths("/proc/kcore");
    const auto text = output(config);
    EXPECT_THAT(text, ::testing::StartsWith("mounted\n"));
    EXPECT_THAT(text, ::testing::EndsWith("Seccomp:\t0\n"));
}

} // namespace
} // namespace gantry::cri_native::testing
