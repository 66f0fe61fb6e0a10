// Every kernel feature that may be missing, taken away: the supervisor is born under a filter that answers ENOSYS.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.hpp"
#include "plugins/cri-native/launch/defaults.hpp"
#include "plugins/cri-native/launch/testing.hpp"

namespace gantry::cri_native::launch::testing {
namespace {

struct missing_feature {
    const char* name;
    std::vector<int> calls;
};

void PrintTo(const missing_feature& f, std::ostream* out) { *out << f.name; }

class fallback : public ::testing::TestWithParam<missing_feature> {};

const std::vector<int> mount_api = {SYS_open_tree, SYS_move_mount, SYS_fsopen,       SYS_fsconfig,
                                    SYS_fsmount,   SYS_fspick,     SYS_mount_setattr};

INSTANTIATE_TEST_SUITE_P(
    without, fallback,
    ::testing::Values(missing_feature{"nothing", {}}, missing_feature{"clone3", {SYS_clone3}},
                      missing_feature{"openat2", {SYS_openat2}}, missing_feature{"mount_setattr", {SYS_mount_setattr}},
                      missing_feature{"close_range", {SYS_close_range}}, missing_feature{"mount_api", mount_api},
                      missing_feature{"all",
                                      {SYS_clone3, SYS_openat2, SYS_close_range, SYS_open_tree, SYS_move_mount,
                                       SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(fallback, containers_are_the_same) {
    test_cgroup group("c");
    pod p({.forbidden_syscalls = GetParam().calls});
    ASSERT_FALSE(p.failure()) << p.failure()->message;
    const std::string outer = p.dir() / "outer";
    const std::string file = p.dir() / "file";
    ASSERT_TRUE(base::make_dirs(outer));
    write_all(file, "bound\n");
    ::symlink("../../../../tmp", (p.image() + "/link").c_str());
    ::symlink("/missing/deep", (p.image() + "/dangling").c_str());

    auto plan = p.shell(
        "c", "exec 2>&1\n"
             "echo $$; cd /proc/self/fd; echo *; cd /w; pwd\n"
             "touch /x; touch /ro/x; touch /ro/in/x && echo nested; cat /link/file /dangling/file\n"
             "echo 1 > /proc/sys/kernel/panic; wc -c < /proc/keys; ls -A /masked; echo -n > /dev/null\n"
             "mount | grep -c nosuid; touch /sys/x; echo x > /dev/shm/f; grep -E '^(Cap|NoNew)' /proc/self/status");
    plan.process.cwd = "/w";
    plan.rootfs.readonly = true;
    plan.cgroup = group.plan();
    const auto mounts = default_mounts(false);
    for (const auto& m : mounts)
        if (m.kind == mount_kind::cgroup) plan.mounts.push_back(m);
    plan.mounts.push_back(
        {.kind = mount_kind::bind, .source = outer, .target = "/ro", .readonly = true, .nosuid = true});
    plan.mounts.push_back({.kind = mount_kind::tmpfs, .target = "/ro/in", .options = {"size=1048576", "mode=700"}});
    plan.mounts.push_back({.kind = mount_kind::bind, .source = file, .target = "/link/file"});
    plan.mounts.push_back({.kind = mount_kind::bind, .source = file, .target = "/dangling/file"});
    ASSERT_TRUE(base::make_dirs(p.image() + "/masked"));
    write_all(p.image() + "/masked/secret", "");
    plan.masked_paths = default_masked_paths();
    plan.masked_paths.push_back("/masked");
    plan.readonly_paths = default_readonly_paths();
    const auto end = p.run(plan);
    ASSERT_TRUE(end) << end.error().message;

    // What the full-featured kernel gives is the yardstick.
    const std::string out = p.log("c");
    EXPECT_TRUE(out.starts_with(
        "1\n0 1 2 3\n/w\ntouch: /x: Read-only file system\ntouch: /ro/x: Read-only file system\nnested\nbound\nbound\n"
        "/bin/sh: can't create /proc/sys/kernel/panic: Read-only file system\n0\n"))
        << out;
    EXPECT_NE(out.find("touch: /sys/x: Read-only file system\nCapInh:\t0000000000000000\n"), std::string::npos) << out;
    EXPECT_NE(out.find("NoNewPrivs:\t1\n"), std::string::npos) << out;
    EXPECT_EQ(read_all(p.run_dir() + "/shm/f"), "x\n");
    EXPECT_FALSE(base::read_file("/tmp/file")) << "a mount target left the root";
}

TEST_P(fallback, exec_terminals_and_timeouts_are_the_same) {
    test_cgroup group("c", true);
    pod p({.forbidden_syscalls = GetParam().calls});
    ASSERT_FALSE(p.failure()) << p.failure()->message;
    auto plan = p.shell("c", "tty; exec sleep 1000");
    plan.process.tty = true;
    plan.cgroup = group.plan();
    const auto started = p.create_and_start(plan);
    ASSERT_TRUE(started) << started.error().message;
    ASSERT_TRUE(eventually([&] { return p.log("c") == "/dev/pts/0\r\n"; })) << p.log("c");
    const auto done = p.exec("c", "echo $$; cd /proc/self/fd; echo *; stat -c %t /dev/console");
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->stdout_data.substr(done->stdout_data.find('\n')), "\n0 1 2 3\n88\n");
    auto slow = pod::exec_shell("setsid sleep 1000 & sleep 1000");
    slow.timeout_ns = 100'000'000;
    const auto timed = p.exec("c", slow);
    ASSERT_TRUE(timed) << timed.error().message;
    EXPECT_TRUE(timed->timed_out);
    EXPECT_TRUE(eventually([&] {
        const auto left = p.exec("c", "ps | grep -c '[s]leep 1000'");
        return left && left->stdout_data == "1\n";
    }));
}

TEST(fallback_limits, what_has_no_fallback_says_so) {
    pod p({.forbidden_syscalls = {SYS_mount_setattr}});
    auto plan = p.shell("c", "true");
    plan.mounts.push_back({.kind = mount_kind::bind,
                           .source = p.dir().path(),
                           .target = "/v",
                           .readonly = true,
                           .recursive_readonly = true});
    const auto made = p.create(plan);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, code::unsupported);
    EXPECT_EQ(made.error().message, "set the mount options of /v: Function not implemented");
}

} // namespace
} // namespace gantry::cri_native::launch::testing
