// One test per hole that a container launcher has had (launcher.md 3.3), each by what it would have let happen.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstring>

#include "base/files.hpp"
#include "plugins/cri-native/launch/defaults.hpp"
#include "plugins/cri-native/launch/testing.hpp"

namespace gantry::cri_native::launch::testing {
namespace {

std::string status_field(const std::string& status, const std::string& name) {
    const auto at = status.find(name + ":\t");
    if (at == std::string::npos) return "absent";
    const auto begin = at + name.size() + 2;
    return status.substr(begin, status.find('\n', begin) - begin);
}

std::vector<std::uint8_t> deny(int call, int err) {
    const sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(err)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    std::vector<std::uint8_t> bytes(sizeof filter);
    std::memcpy(bytes.data(), filter, sizeof filter);
    return bytes;
}

class security : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_FALSE(p_.failure()) << p_.failure()->message; }
    std::string output_of(const container_plan& plan) {
        const auto end = p_.run(plan);
        EXPECT_TRUE(end) << end.error().message;
        return p_.log(plan.id);
    }
    pod p_;
};

TEST_F(security, process_has_only_the_planned_capabilities) {
    auto plan = p_.shell("c", "cat /proc/self/status");
    plan.process.capabilities = capability_bit("CHOWN") | capability_bit("cap_kill");
    const std::string status = output_of(plan);
    EXPECT_EQ(status_field(status, "CapPrm"), "0000000000000021");
    EXPECT_EQ(status_field(status, "CapEff"), "0000000000000021");
    EXPECT_EQ(status_field(status, "CapBnd"), "0000000000000021");
    EXPECT_EQ(status_field(status, "NoNewPrivs"), "1");
}

TEST_F(security, another_user_loses_every_capability_at_execve) {
    auto plan = p_.shell("c", "cat /proc/self/status");
    plan.process.uid = 1000;
    const std::string status = output_of(plan);
    EXPECT_EQ(status_field(status, "CapPrm"), "0000000000000000");
    EXPECT_EQ(status_field(status, "CapEff"), "0000000000000000");
    EXPECT_NE(status_field(status, "CapBnd"), "0000000000000000");
}

TEST_F(security, cve_2022_29162_inheritable_and_ambient_sets_are_empty_also_for_exec) {
    auto plan = p_.shell("c", "cat /proc/self/status; sleep 1000");
    plan.process.capabilities = all_capabilities();
    ASSERT_TRUE(p_.create_and_start(plan));
    ASSERT_TRUE(eventually([&] { return p_.log("c").find("Cap") != std::string::npos; }));
    auto command = pod::exec_shell("cat /proc/self/status");
    command.process.capabilities = all_capabilities();
    const auto done = p_.exec("c", command);
    ASSERT_TRUE(done) << done.error().message;
    for (const std::string& status : {p_.log("c"), done->stdout_data}) {
        EXPECT_EQ(status_field(status, "CapInh"), "0000000000000000");
        EXPECT_EQ(status_field(status, "CapAmb"), "0000000000000000");
        EXPECT_NE(status_field(status, "CapEff"), "0000000000000000");
    }
}

TEST_F(security, seccomp_filter_is_on_with_and_without_no_new_privs) {
    auto plan = p_.shell("nnp", "exec 2>&1; hostname x; grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status");
    plan.process.capabilities = all_capabilities();
    plan.process.seccomp = deny(SYS_sethostname, EACCES);
    const std::string expected = "hostname: sethostname: Permission denied\nNoNewPrivs:\t1\nSeccomp:\t2\n";
    EXPECT_EQ(output_of(plan), expected);
    plan = p_.shell("privs", "exec 2>&1; hostname x; grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status");
    plan.process.capabilities = all_capabilities();
    plan.process.seccomp = deny(SYS_sethostname, EACCES);
    plan.process.no_new_privs = false;
    EXPECT_EQ(output_of(plan), "hostname: sethostname: Permission denied\nNoNewPrivs:\t0\nSeccomp:\t2\n");
}

TEST_F(security, cve_2019_5736_the_program_behind_a_process_that_enters_cannot_be_written) {
    // Started, waiting at its gate: /proc/PID/exe is the supervisor's program, as it is for an exec's child.
    const auto pid = p_.create(p_.shell("c", "true"));
    ASSERT_TRUE(pid) << pid.error().message;
    for (const pid_t each : {*pid, p_.supervisor_pid()}) {
        const std::string exe = "/proc/" + std::to_string(each) + "/exe";
        EXPECT_LT(::open(exe.c_str(), O_WRONLY | O_CLOEXEC), 0) << "running programs are busy";
        EXPECT_LT(::truncate(exe.c_str(), 0), 0);
        base::unique_fd program(::open(exe.c_str(), O_RDONLY | O_CLOEXEC));
        ASSERT_TRUE(program);
        constexpr int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        EXPECT_EQ(::fcntl(program.get(), F_GET_SEALS) & seals, seals) << "not busy any more, it would be writable";
    }
}

TEST_F(security, cve_2019_5736_an_image_whose_program_is_proc_self_exe_gains_nothing) {
    ::symlink("/proc/self/exe", (p_.image() + "/bin/evil").c_str());
    ASSERT_TRUE(p_.create_and_start(p_.plan("c", {"sleep", "1000"})));
    auto command = pod::exec_shell("");
    command.process.argv = {"/bin/evil"};
    const auto done =
        p_.exec("c", command); // runs the supervisor's own program, without descriptors: it gives up at once
    if (done) {
        EXPECT_NE(done->exit_code, 0);
    }
    EXPECT_TRUE(p_.exec("c", "true"));
}

TEST_F(security, cve_2021_30465_a_symlink_as_mount_target_stays_inside_the_root) {
    const std::string host_dir = p_.dir() / "host";
    ASSERT_TRUE(base::make_dirs(host_dir));
    const std::string up = "../../../../../../../../../.." + host_dir;
    ::symlink(up.c_str(), (p_.image() + "/relative").c_str());
    ::symlink(host_dir.c_str(), (p_.image() + "/absolute").c_str());
    const std::string volume = p_.dir() / "volume";
    ASSERT_TRUE(base::make_dirs(volume));
    write_all(volume + "/mark", "here\n");
    auto plan = p_.shell("c", "cat /relative/mark /absolute/mark " + host_dir + "/mark");
    plan.mounts.push_back({.kind = mount_kind::bind, .source = volume, .target = "/relative"});
    plan.mounts.push_back({.kind = mount_kind::bind, .source = volume, .target = "/absolute"});
    EXPECT_EQ(output_of(plan), "here\nhere\nhere\n");
    EXPECT_FALSE(base::read_file(host_dir + "/mark")) << "the host's directory was covered";
}

TEST_F(security, cve_2021_30465_a_container_that_swaps_links_never_moves_a_mount_out) {
    const std::string shared = p_.dir() / "shared";
    const std::string volume = p_.dir() / "volume";
    for (const auto& dir : {shared + "/real", volume}) ASSERT_TRUE(base::make_dirs(dir));
    write_all(volume + "/mark", "");
    auto racer = p_.shell(
        "racer", "cd /s; ln -s / link; while :; do mv real tmp; mv link real; mv real link; mv tmp real; done");
    racer.mounts.push_back({.kind = mount_kind::bind, .source = shared, .target = "/s"});
    ASSERT_TRUE(p_.create_and_start(racer));
    for (int round = 0; round < 40; ++round) {
        const std::string id = "victim" + std::to_string(round);
        auto plan = p_.shell(id, "true");
        plan.mounts.push_back({.kind = mount_kind::bind, .source = shared, .target = "/s"});
        plan.mounts.push_back({.kind = mount_kind::bind, .source = volume, .target = "/s/real/etc"});
        const auto end = p_.run(plan);
        if (!end) {
            EXPECT_NE(end.error().message.find("mount"), std::string::npos) << end.error().message;
        }
        ASSERT_FALSE(base::read_file("/etc/mark")) << "the host's /etc was covered";
    }
}

TEST_F(security, cve_2024_21626_a_working_directory_through_a_descriptor_is_refused) {
    for (int fd = 3; fd < 16; ++fd) {
        const std::string id = "c" + std::to_string(fd);
        auto plan = p_.shell(id, "pwd; ls ../../../../etc/hostname");
        plan.process.cwd = "/proc/self/fd/" + std::to_string(fd);
        const auto started = p_.create_and_start(plan);
        EXPECT_FALSE(started) << p_.log(id);
    }
}

TEST_F(security, cve_2024_21626_exec_cannot_use_a_descriptor_as_working_directory_either) {
    ::symlink("/proc/self/fd/8", (p_.image() + "/cwd").c_str());
    ASSERT_TRUE(p_.create_and_start(p_.plan("c", {"sleep", "1000"})));
    for (const char* cwd : {"/proc/self/fd/3", "/proc/self/fd/8", "/cwd"}) {
        auto command = pod::exec_shell("pwd");
        command.process.cwd = cwd;
        EXPECT_FALSE(p_.exec("c", command)) << cwd;
    }
}

TEST_F(security, cve_2024_21626_no_descriptor_but_stdio_reaches_the_container) {
    EXPECT_EQ(output_of(p_.shell("c", "cd /proc/self/fd; echo *")),
              "0 1 2 3\n"); // 3 is the shell's own, for the listing
    ASSERT_TRUE(p_.create_and_start(p_.plan("d", {"sleep", "1000"})));
    const auto done = p_.exec("d", "cd /proc/self/fd; echo *");
    ASSERT_TRUE(done);
    EXPECT_EQ(done->stdout_data, "0 1 2 3\n");
}

TEST_F(security, cve_2024_45310_missing_targets_are_made_inside_the_root_only) {
    const std::string host_dir = p_.dir() / "outside";
    ::symlink(("../../../../../../.." + host_dir).c_str(), (p_.image() + "/dangling").c_str());
    const std::string file = p_.dir() / "source";
    write_all(file, "content\n");
    auto plan = p_.shell("c", "cat /dangling/deep/file");
    plan.mounts.push_back({.kind = mount_kind::bind, .source = file, .target = "/dangling/deep/file"});
    EXPECT_EQ(output_of(plan), "content\n");
    struct stat st {};
    EXPECT_NE(::stat(host_dir.c_str(), &st), 0) << "made on the host";
}

TEST_F(security, cve_2025_31133_masked_paths_use_the_hosts_null_device) {
    // The image brings a /dev/null of its own, which must not become the mask.
    auto plan = p_.shell("c", "cat /masked/file; ls -A /masked/dir; echo x > /masked/file; stat -c %t,%T /masked/file");
    ASSERT_TRUE(base::make_dirs(p_.image() + "/masked/dir"));
    write_all(p_.image() + "/masked/file", "secret\n");
    write_all(p_.image() + "/masked/dir/secret", "");
    ::symlink("/masked/file", (p_.image() + "/dev/null").c_str());
    std::erase_if(plan.mounts, [](const mount_plan& m) { return m.target.starts_with("/dev"); });
    plan.devices.clear();
    plan.masked_paths = {"/masked/file", "/masked/dir", "/masked/absent", "/masked/file/below"};
    EXPECT_EQ(output_of(plan), "1,3\n");
}

TEST_F(security, default_masks_and_read_only_paths_hold) {
    auto plan = p_.shell("c", "exec 2>&1; wc -c < /proc/timer_list; wc -c < /proc/keys; echo 1 > "
                              "/proc/sys/kernel/panic; ls -A /sys/firmware");
    plan.process.capabilities = all_capabilities();
    plan.masked_paths = default_masked_paths();
    plan.readonly_paths = default_readonly_paths();
    EXPECT_EQ(output_of(plan), "0\n0\n/bin/sh: can't create /proc/sys/kernel/panic: Read-only file system\n");
}

TEST_F(security, cve_2025_52565_console_is_the_terminal_itself) {
    auto plan = p_.shell("c", "tty; stat -c %t /dev/console | grep -q 88 && echo pty > /dev/console");
    plan.process.tty = true;
    ::symlink("/proc/sys/kernel/core_pattern", (p_.image() + "/dev/console").c_str()); // hidden by the fresh /dev
    EXPECT_EQ(output_of(plan), "/dev/pts/0\r\npty\r\n");
}

TEST_F(security, cve_2025_52881_proc_of_the_image_is_never_written) {
    // oom_score_adj goes through the host's proven /proc: a fake one in the image stays as it was.
    ASSERT_TRUE(base::make_dirs(p_.image() + "/proc/self"));
    write_all(p_.image() + "/proc/self/oom_score_adj", "fake\n");
    auto plan = p_.shell("c", "cat /proc/self/oom_score_adj; umount /proc; cat /proc/self/oom_score_adj");
    plan.process.oom_score_adj = 777;
    plan.process.capabilities = all_capabilities();
    EXPECT_EQ(output_of(plan), "777\nfake\n");
}

TEST_F(security, cve_2019_19921_a_volume_over_proc_is_refused) {
    const std::string volume = p_.dir() / "volume";
    ASSERT_TRUE(base::make_dirs(volume));
    auto plan = p_.shell("c", "true");
    plan.mounts.push_back({.kind = mount_kind::bind, .source = volume, .target = "/proc/sys"});
    const auto made = p_.create(plan);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message, "mount target /proc/sys lies inside /proc");
    write_all(volume + "/meminfo", "MemTotal: 1 kB\n");
    plan = p_.shell("lxcfs", "cat /proc/meminfo");
    plan.mounts.push_back({.kind = mount_kind::bind, .source = volume + "/meminfo", .target = "/proc/meminfo"});
    EXPECT_EQ(output_of(plan), "MemTotal: 1 kB\n");
}

TEST_F(security, cve_2026_41579_an_image_whose_dev_is_a_symlink_is_refused) {
    for (const char* name : {"dev", "proc", "sys"}) {
        const std::string layer = p_.dir() / (std::string("layer-") + name);
        ASSERT_TRUE(base::make_dirs(layer + "/tmp/x"));
        ::symlink("/tmp/x", (layer + "/" + name).c_str());
        auto plan = p_.shell(std::string("c-") + name, "true");
        ::rmdir((p_.image() + "/" + name).c_str());
        plan.rootfs.overlay->lower.insert(plan.rootfs.overlay->lower.begin(), layer);
        const auto made = p_.create(plan);
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().message, std::string("mount target /") + name + " is a symbolic link in the image");
        EXPECT_TRUE(names_in(plan.rootfs.overlay->upper + "/tmp/x").empty());
        ASSERT_TRUE(base::make_dirs(p_.image() + "/" + name));
    }
}

TEST_F(security, cve_2020_15257_the_socket_is_a_file_that_only_root_can_use) {
    const std::string path = p_.run_dir() + "/supervisor.sock";
    struct stat st {};
    ASSERT_EQ(::stat(path.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600u);
    // What a pod on the host's network could see: no abstract socket of ours.
    EXPECT_EQ(read_all("/proc/net/unix").find("@gantry"), std::string::npos);
}

TEST_F(security, cve_2023_25173_supplementary_groups_are_exactly_the_plans) {
    auto plan = p_.shell("c", "grep ^Groups: /proc/self/status");
    plan.process.uid = 1000;
    plan.process.gid = 2000;
    EXPECT_EQ(output_of(plan), "Groups:\t \n");
}

TEST_F(security, supervisor_is_not_dumpable_and_leaks_no_descriptor) {
    const std::string proc = "/proc/" + std::to_string(p_.supervisor_pid());
    const auto fds = names_in(proc + "/fd");
    EXPECT_LE(fds.size(), 10u);
    for (const auto& fd : fds) {
        char target[256] = {};
        ASSERT_GT(::readlink((proc + "/fd/" + fd).c_str(), target, sizeof target - 1), 0);
        const std::string t = target;
        EXPECT_TRUE(t == "/dev/null" || t.starts_with("socket:") || t.starts_with("anon_inode:") ||
                    t.starts_with("pid:") || t == p_.run_dir())
            << t;
    }
    struct stat st {};
    ASSERT_EQ(::stat((proc + "/environ").c_str(), &st), 0);
    EXPECT_EQ(st.st_uid, 0u);
    EXPECT_EQ(read_all(proc + "/comm"), "gantry-pod\n");
}

TEST_F(security, read_only_bind_mounts_hold_while_nested_targets_are_still_made) {
    // k/k#60342: the mount point of the inner volume is created in the outer one before that turns read-only.
    const std::string outer = p_.dir() / "outer";
    const std::string inner = p_.dir() / "inner";
    for (const auto& dir : {outer, inner}) ASSERT_TRUE(base::make_dirs(dir));
    write_all(inner + "/mark", "inner\n");
    auto plan = p_.shell("c", "exec 2>&1; cat /v/a/b/mark; touch /v/x; touch /v/a/b/ok && echo ok");
    plan.mounts.push_back({.kind = mount_kind::bind, .source = inner, .target = "/v/a/b"});
    plan.mounts.push_back({.kind = mount_kind::bind, .source = outer, .target = "/v", .readonly = true});
    EXPECT_EQ(output_of(plan), "inner\ntouch: /v/x: Read-only file system\nok\n");
}

} // namespace
} // namespace gantry::cri_native::launch::testing
