// What a container's first process gets and how its end is told.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/files.hpp"
#include "plugins/cri-native/launch/defaults.hpp"
#include "plugins/cri-native/launch/testing.hpp"

namespace gantry::cri_native::launch::testing {
namespace {

class container : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_FALSE(p_.failure()) << p_.failure()->message; }

    /// Runs a script that must succeed; its output.
    std::string output_of(const container_plan& plan) {
        const auto end = p_.run(plan);
        EXPECT_TRUE(end) << end.error().message;
        if (end) {
            EXPECT_EQ(end->exit_code, 0) << p_.log(plan.id);
        }
        return p_.log(plan.id);
    }
    std::string start_error(const container_plan& plan) {
        const auto started = p_.create_and_start(plan);
        EXPECT_FALSE(started);
        return started ? "" : started.error().message;
    }

    pod p_;
};

TEST_F(container, reports_exit_code_and_keeps_streams_apart) {
    const auto end = p_.run(p_.shell("c", "echo hello; echo oops >&2; exit 7"));
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->exit_code, 7);
    EXPECT_EQ(end->exit_signal, 0);
    EXPECT_LE(end->created_ns, end->started_ns);
    EXPECT_LE(end->started_ns, end->finished_ns);
    EXPECT_EQ(p_.log("c", "stdout"), "hello\n");
    EXPECT_EQ(p_.log("c", "stderr"), "oops\n");
}

TEST_F(container, reports_the_signal_that_ended_it) {
    ASSERT_TRUE(p_.create_and_start(p_.plan("c", {"sleep", "1000"})));
    ASSERT_TRUE(p_.signal("c", SIGKILL));
    const auto end = p_.wait_exit("c");
    ASSERT_TRUE(end);
    EXPECT_EQ(end->exit_code, 137);
    EXPECT_EQ(end->exit_signal, SIGKILL);
    EXPECT_FALSE(end->oom_killed);
}

TEST_F(container, handles_a_signal_it_asked_for) {
    ASSERT_TRUE(p_.create_and_start(
        p_.shell("c", "trap 'echo got it; exit 3' TERM; echo ready; while :; do usleep 1000; done")));
    ASSERT_TRUE(eventually([&] { return p_.log("c") == "ready\n"; }));
    ASSERT_TRUE(p_.signal("c", SIGTERM));
    const auto end = p_.wait_exit("c");
    ASSERT_TRUE(end);
    EXPECT_EQ(end->exit_code, 3);
    EXPECT_EQ(p_.log("c"), "ready\ngot it\n");
}

TEST_F(container, waits_at_its_gate_between_create_and_start) {
    ASSERT_TRUE(p_.create(p_.shell("c", "echo ran")));
    auto known = p_.await<std::vector<container_info>>([&](auto done) { p_.client().list(done); });
    ASSERT_TRUE(known);
    ASSERT_EQ(known->size(), 1u);
    EXPECT_EQ((*known)[0].state, container_state::created);
    EXPECT_EQ(p_.log("c"), "");
    ASSERT_TRUE(p_.start("c"));
    ASSERT_TRUE(p_.wait_exit("c"));
    EXPECT_EQ(p_.log("c"), "ran\n");
    EXPECT_FALSE(p_.start("c"));
}

TEST_F(container, can_be_killed_before_it_is_started) {
    ASSERT_TRUE(p_.create(p_.shell("c", "echo ran")));
    ASSERT_TRUE(p_.signal("c", SIGKILL));
    const auto end = p_.wait_exit("c");
    ASSERT_TRUE(end);
    EXPECT_EQ(end->exit_code, 137);
    EXPECT_EQ(end->started_ns, 0);
    EXPECT_EQ(p_.log("c"), "");
}

TEST_F(container, is_forgotten_only_after_its_end) {
    ASSERT_TRUE(p_.create_and_start(p_.plan("c", {"sleep", "1000"})));
    const auto forget = [&] { return p_.await<void>([&](auto done) { p_.client().forget("c", done); }); };
    EXPECT_FALSE(forget());
    EXPECT_FALSE(p_.create(p_.shell("c", "true"))) << "the id is taken";
    ASSERT_TRUE(p_.signal("c", SIGKILL));
    ASSERT_TRUE(p_.wait_exit("c"));
    EXPECT_EQ(read_exit_records(p_.run_dir())->size(), 1u);
    EXPECT_TRUE(forget());
    EXPECT_EQ(read_exit_records(p_.run_dir())->size(), 0u);
    EXPECT_EQ(p_.signal("c", 0).error().code, code::not_found);
}

TEST_F(container, is_pid_1_in_its_own_namespace_and_sees_only_itself) {
    EXPECT_EQ(output_of(p_.shell("c", "echo $$; ls /proc | grep -c '^[0-9]*$'")), "1\n3\n"); // sh, ls, grep
}

TEST_F(container, gets_exactly_its_environment_bytes_included) {
    auto plan = p_.plan("c", {"env"});
    plan.process.env = {"PATH=/bin", "A=1", "RAW=\xff\xfe", "EMPTY="};
    EXPECT_EQ(output_of(plan), "PATH=/bin\nA=1\nRAW=\xff\xfe\nEMPTY=\n");
}

TEST_F(container, runs_as_the_numeric_user_without_any_passwd) {
    auto plan = p_.shell("c", "grep -E '^(Uid|Gid|Groups):' /proc/self/status; echo x > /dev/stdout");
    plan.process.uid = 1234;
    plan.process.gid = 0;
    plan.process.groups = {7, 4294967294u};
    const std::string out = output_of(plan);
    EXPECT_NE(out.find("Uid:\t1234\t1234\t1234\t1234\n"), std::string::npos) << out;
    EXPECT_NE(out.find("Gid:\t0\t0\t0\t0\n"), std::string::npos) << out;
    EXPECT_NE(out.find("Groups:\t7 4294967294"), std::string::npos) << out;
    EXPECT_NE(out.find("x\n"), std::string::npos) << "its own stdout can be opened again";
}

TEST_F(container, has_the_umask_and_limits_of_its_plan) {
    auto plan = p_.shell("c", "umask; ulimit -n; ulimit -c");
    plan.process.umask = 0027;
    plan.process.rlimits = {{RLIMIT_NOFILE, 123, 200}, {RLIMIT_CORE, 0, 0}};
    EXPECT_EQ(output_of(plan), "0027\n123\n0\n");
}

TEST_F(container, writes_its_root_and_not_a_read_only_one) {
    EXPECT_EQ(output_of(p_.shell("rw", "echo data > /tmp/f && cat /tmp/f")), "data\n");
    auto plan = p_.shell("ro", "exec 2>&1; echo x > /f; echo x > /dev/null && touch /dev/shm/f && echo ok");
    plan.rootfs.readonly = true;
    EXPECT_EQ(output_of(plan), "/bin/sh: can't create /f: Read-only file system\nok\n");
}

TEST_F(container, runs_on_a_plain_directory) {
    auto plan = p_.shell("c", "readlink /bin/sh");
    plan.rootfs = {.overlay = {}, .bind = p_.image(), .readonly = true};
    EXPECT_EQ(output_of(plan), "busybox\n");
}

TEST_F(container, stacks_many_layers_top_most_first) {
    auto plan = p_.shell("c", "cat /which; ls /layers | wc -l");
    plan.rootfs.overlay->lower.clear();
    for (int i = 0; i < 70; ++i) {
        const std::string layer = p_.dir() / ("l" + std::to_string(i));
        ASSERT_TRUE(base::make_dirs(layer + "/layers"));
        write_all(layer + "/which", std::to_string(i) + "\n");
        write_all(layer + "/layers/" + std::to_string(i), "");
        plan.rootfs.overlay->lower.push_back(layer);
    }
    plan.rootfs.overlay->lower.push_back(p_.image());
    EXPECT_EQ(output_of(plan), "0\n70\n");
}

TEST_F(container, counts_an_oom_kill_of_this_run) {
    test_cgroup group("c");
    auto plan = p_.shell("c", "x=a; while :; do x=$x$x; done");
    plan.cgroup = group.plan();
    const std::string limit = plan.cgroup.v2.empty() ? "/memory.limit_in_bytes" : "/memory.max";
    write_all(group.dir("memory") + limit, "16777216");
    const auto end = p_.run(plan);
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->exit_code, 137);
    EXPECT_TRUE(end->oom_killed);
}

TEST_F(container, tells_when_its_memory_limit_is_below_what_a_start_needs) {
    test_cgroup group("c");
    auto plan = p_.shell("c", "true");
    plan.cgroup = group.plan();
    const std::string limit = plan.cgroup.v2.empty() ? "/memory.limit_in_bytes" : "/memory.max";
    write_all(group.dir("memory") + limit, "4096");
    const auto made = p_.create(plan);
    if (made) { // a kernel that charges little gets as far as the gate
        ASSERT_TRUE(p_.start("c"));
        EXPECT_TRUE(p_.wait_exit("c"));
        return;
    }
    EXPECT_EQ(made.error().code, code::resource) << made.error().message;
    EXPECT_NE(made.error().message.find("its memory limit is too low"), std::string::npos) << made.error().message;
}

TEST_F(container, is_accounted_in_every_cgroup_and_sees_them_as_its_root) {
    test_cgroup group("c");
    auto plan = p_.shell("c", "cat /proc/self/cgroup; sleep 1000");
    plan.cgroup = group.plan();
    ASSERT_TRUE(p_.create_and_start(plan));
    ASSERT_TRUE(eventually([&] { return !p_.log("c").empty(); }));
    for (const auto& dir : group.dirs()) EXPECT_NE(read_all(dir + "/cgroup.procs"), "") << dir;
    for (const auto& h : plan.cgroup.v1) {
        const std::string controllers = h.options.starts_with("none,") ? h.options.substr(5) : h.options;
        EXPECT_NE(p_.log("c").find(":" + controllers + ":/\n"), std::string::npos) << controllers << " in\n"
                                                                                   << p_.log("c");
    }
}

TEST_F(container, sees_its_own_cgroups_mounted_read_only) {
    test_cgroup group("c");
    auto plan =
        p_.shell("c", "cat /sys/fs/cgroup/memory/cgroup.procs /sys/fs/cgroup/cgroup.procs 2>/dev/null | head -n 1;"
                      "mkdir /sys/fs/cgroup/memory/x 2>&1 | grep -o 'Read-only file system'");
    plan.cgroup = group.plan();
    const auto mounts = default_mounts(false);
    for (const auto& m : mounts)
        if (m.kind == mount_kind::cgroup) plan.mounts.push_back(m);
    EXPECT_EQ(output_of(plan), "1\nRead-only file system\n");
}

// cases.md 8
TEST_F(container, without_path_uses_and_exports_the_default_one) {
    auto plan = p_.plan("c", {"sh", "-c", "echo $PATH"});
    plan.process.env = {};
    EXPECT_EQ(output_of(plan), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
}

TEST_F(container, looks_its_program_up_on_its_own_path) {
    auto plan = p_.plan("c", {"sh", "-c", "echo found"});
    plan.process.env = {"PATH=/nowhere:/etc:/bin"};
    EXPECT_EQ(output_of(plan), "found\n");
    EXPECT_EQ(start_error(p_.plan("missing", {"no-such-program"})),
              "exec: \"no-such-program\": executable file not found in $PATH");
    EXPECT_EQ(p_.wait_exit("missing")->exit_code, 127);
    EXPECT_EQ(start_error(p_.plan("absolute", {"/no/such"})), "exec: \"/no/such\": No such file or directory");
    EXPECT_EQ(start_error(p_.plan("directory", {"/etc"})), "exec: \"/etc\": permission denied");
    EXPECT_EQ(p_.wait_exit("directory")->exit_code, 126);
}

TEST_F(container, says_what_is_wrong_with_a_program_that_cannot_run) {
    write_all(p_.image() + "/bin/text", "just text\n");
    ::chmod((p_.image() + "/bin/text").c_str(), 0755);
    write_all(p_.image() + "/bin/orphan", "#!/bin/no-shell\n");
    ::chmod((p_.image() + "/bin/orphan").c_str(), 0755);
    EXPECT_NE(start_error(p_.plan("text", {"text"})).find("exec format error"), std::string::npos);
    EXPECT_NE(start_error(p_.plan("orphan", {"orphan"})).find("interpreter or dynamic loader is missing"),
              std::string::npos);
}

// cases.md 7
TEST_F(container, without_a_command_is_refused_before_anything_is_made) {
    const auto made = p_.create(p_.plan("c", {}));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message, "no command specified");
    EXPECT_EQ(made.error().code, code::invalid);
}

// cases.md 4
TEST_F(container, enters_a_working_directory_that_only_root_or_only_the_user_can) {
    const std::string home = p_.image() + "/home";
    ASSERT_TRUE(base::make_dirs(home + "/private", 0700));
    ::chown(home.c_str(), 1000, 1000);
    auto plan = p_.shell("root", "pwd");
    plan.process.cwd = "/home/private"; // only root
    plan.process.uid = 1234;
    EXPECT_EQ(output_of(plan), "/home/private\n");
}

TEST_F(container, creates_a_missing_working_directory) {
    auto plan = p_.shell("c", "pwd; stat -c %a:%u .");
    plan.process.cwd = "/srv/app/data";
    EXPECT_EQ(output_of(plan), "/srv/app/data\n755:0\n");
}

TEST_F(container, tells_a_working_directory_that_is_none) {
    write_all(p_.image() + "/file", "");
    auto plan = p_.shell("c", "pwd");
    plan.process.cwd = "/file";
    EXPECT_EQ(start_error(plan), "working directory \"/file\": Not a directory");
    EXPECT_EQ(p_.wait_exit("c")->exit_code, 128);
}

TEST_F(container, gets_devices_and_the_usual_links) {
    EXPECT_EQ(output_of(p_.shell("c", "exec 2>&1; cd /dev; stat -c %n:%t,%T:%a null zero full random urandom tty;"
                                      "for l in fd stdin stdout stderr ptmx; do readlink $l; done;"
                                      "head -c 3 /dev/zero | wc -c; echo x > /dev/full || :")),
              "null:1,3:666\nzero:1,5:666\nfull:1,7:666\nrandom:1,8:666\nurandom:1,9:666\ntty:5,0:666\n"
              "/proc/self/fd\n/proc/self/fd/0\n/proc/self/fd/1\n/proc/self/fd/2\npts/ptmx\n3\nsh: write error: No "
              "space left on device\n");
}

TEST_F(container, exit_is_on_disk_before_it_is_told) {
    ASSERT_TRUE(p_.create_and_start(p_.shell("c", "exit 4")));
    ASSERT_TRUE(p_.wait_exit("c"));
    const auto records = read_exit_records(p_.run_dir());
    ASSERT_TRUE(records);
    ASSERT_EQ(records->size(), 1u);
    EXPECT_EQ((*records)[0].id, "c");
    EXPECT_EQ((*records)[0].exit_code, 4);
    EXPECT_GT((*records)[0].finished_ns, 0);
}

// cases.md 24
TEST_F(container, tells_the_sizes_when_the_environment_is_too_large) {
    auto plan = p_.shell("c", "true");
    plan.process.env.push_back("BIG=" + std::string(200u << 10, 'x'));
    const auto message = start_error(plan);
    EXPECT_NE(message.find("Argument list too long"), std::string::npos) << message;
    EXPECT_NE(message.find("\"BIG\" has 204804 of at most 131071"), std::string::npos) << message;
}

} // namespace
} // namespace gantry::cri_native::launch::testing
