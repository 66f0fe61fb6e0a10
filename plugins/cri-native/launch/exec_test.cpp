// Commands in a running container.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "base/files.hpp"
#include "plugins/cri-native/launch/defaults.hpp"
#include "plugins/cri-native/launch/testing.hpp"

namespace gantry::cri_native::launch::testing {
namespace {

/// Processes of the machine, zombies aside, whose command line holds a mark.
int processes_with(const std::string& mark) {
    int count = 0;
    for (const auto& pid : names_in("/proc")) {
        if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
        if (read_all("/proc/" + pid + "/cmdline").find(mark) == std::string::npos) continue;
        const std::string stat = read_all("/proc/" + pid + "/stat");
        count += stat.find(") Z ") == std::string::npos;
    }
    return count;
}

class exec : public ::testing::Test {
protected:
    explicit exec(bool hybrid = false) : group_("c", hybrid) {}
    void SetUp() override {
        ASSERT_FALSE(p_.failure()) << p_.failure()->message;
        auto plan = p_.shell("c", "echo up; exec sleep 1000");
        plan.cgroup = group_.plan();
        const auto started = p_.create_and_start(plan);
        ASSERT_TRUE(started) << started.error().message;
        ASSERT_TRUE(eventually([&] { return p_.log("c") == "up\n"; }));
    }
    std::string leaf_parent() const { return group_.plan().v2.empty() ? group_.plan().freezer_dir : group_.plan().v2; }
    int leaves() const {
        int count = 0;
        for (const auto& name : names_in(leaf_parent())) count += name.starts_with("exec-");
        return count;
    }

    test_cgroup group_;
    pod p_;
};

TEST_F(exec, captures_output_and_exit_code) {
    const auto done = p_.exec("c", "echo out; echo err >&2; exit 5");
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->exit_code, 5);
    EXPECT_EQ(done->stdout_data, "out\n");
    EXPECT_EQ(done->stderr_data, "err\n");
    EXPECT_FALSE(done->timed_out);
    EXPECT_TRUE(eventually([&] { return leaves() == 0; }));
}

TEST_F(exec, sees_the_container_and_not_the_host) {
    const auto done = p_.exec("c", "hostname; cat /proc/1/cmdline | tr '\\0' ' '; ls /; cat /proc/self/cgroup");
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->stdout_data.starts_with("test-pod\nsleep 1000 bin\n")) << done->stdout_data;
    EXPECT_EQ(done->stdout_data.find("gantry"), std::string::npos) << "its cgroups begin at the container's";
}

TEST_F(exec, runs_as_another_user_in_another_directory_with_its_own_environment) {
    auto plan = pod::exec_shell("id -u; id -g; pwd; echo $X");
    plan.process.uid = 12;
    plan.process.gid = 34;
    plan.process.cwd = "/tmp";
    plan.process.env.push_back("X=\xfe");
    const auto done = p_.exec("c", plan);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->stdout_data, "12\n34\n/tmp\n\xfe\n");
}

// cases.md 42
TEST_F(exec, returns_megabytes_whole_and_cuts_at_the_limit) {
    const auto done = p_.exec("c", "seq 1 300000");
    ASSERT_TRUE(done) << done.error().message;
    std::string all;
    for (int i = 1; i <= 300000; ++i) all += std::to_string(i) + "\n";
    EXPECT_TRUE(done->stdout_data == all) << done->stdout_data.size();
    auto plan = pod::exec_shell("seq 1 300000; echo done >&2");
    plan.capture_limit = 1000;
    const auto cut = p_.exec("c", plan);
    ASSERT_TRUE(cut);
    EXPECT_TRUE(cut->stdout_data == all.substr(0, 1000));
    EXPECT_EQ(cut->stderr_data, "done\n");
}

/// The container and its commands live in a cgroup v2 directory as well: born there, killed by cgroup.kill.
class exec_v2 : public exec {
protected:
    exec_v2() : exec(true) {}
};

TEST_F(exec_v2, timeout_kills_the_whole_tree_daemons_included) {
    if (group_.plan().v2.empty()) GTEST_SKIP() << "no cgroup v2 here";
    EXPECT_NE(read_all(group_.plan().v2 + "/cgroup.procs"), "");
    const std::string mark = "7" + std::to_string(::getpid()) + "5";
    auto plan = pod::exec_shell("(setsid nohup sleep " + mark + " &); sleep " + mark);
    plan.timeout_ns = 200'000'000;
    const auto done = p_.exec("c", plan);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(done->timed_out);
    EXPECT_TRUE(eventually([&] { return processes_with(mark) == 0 && leaves() == 0; }));
    const auto inside = p_.exec("c", "cat /proc/self/cgroup");
    ASSERT_TRUE(inside);
    EXPECT_NE(inside->stdout_data.find("0::/exec-"), std::string::npos) << inside->stdout_data;
}

// cases.md 28
TEST_F(exec, timeout_kills_the_whole_tree_daemons_included) {
    const std::string mark = "9" + std::to_string(::getpid()) + "7";
    auto plan = pod::exec_shell("setsid sleep " + mark + " & (setsid nohup sleep " + mark + " &) ; sleep " + mark);
    plan.timeout_ns = 300'000'000;
    for (int round = 0; round < 10; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        const auto done = p_.exec("c", plan);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_TRUE(done->timed_out);
        EXPECT_EQ(done->exit_code, 137);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
        EXPECT_TRUE(eventually([&] { return processes_with(mark) == 0; })) << processes_with(mark) << " left";
    }
    EXPECT_TRUE(eventually([&] { return leaves() == 0; }));
    EXPECT_TRUE(p_.exec("c", "true")) << "the container itself lives";
}

TEST_F(exec, background_process_that_keeps_the_output_open_does_not_hold_a_timed_call) {
    auto plan = pod::exec_shell("sleep 1000 & echo started");
    plan.timeout_ns = 500'000'000;
    const auto done = p_.exec("c", plan);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->exit_code, 0);
    EXPECT_EQ(done->stdout_data, "started\n");
    EXPECT_FALSE(done->timed_out);
}

TEST_F(exec, a_hundred_at_once_all_answer) {
    std::vector<answer<exec_result>> all(100);
    for (std::size_t i = 0; i < all.size(); ++i)
        p_.client().exec_captured("c", pod::exec_shell("echo " + std::to_string(i)), all[i].fn());
    for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_TRUE(p_.pump([&] { return all[i].came(); })) << i;
        ASSERT_TRUE(*all[i]) << all[i]->error().message;
        EXPECT_EQ((*all[i])->stdout_data, std::to_string(i) + "\n");
    }
    EXPECT_TRUE(eventually([&] { return leaves() == 0; }));
}

TEST_F(exec, errors_name_the_program_or_the_container) {
    auto plan = pod::exec_shell("");
    plan.process.argv = {"no-such"};
    EXPECT_EQ(p_.exec("c", plan).error().message, "exec: \"no-such\": executable file not found in $PATH");
    EXPECT_EQ(p_.exec("other", "true").error().code, code::not_found);
    ASSERT_TRUE(p_.create(p_.shell("created", "true")));
    EXPECT_FALSE(p_.exec("created", "true")) << "nothing runs there yet";
    EXPECT_TRUE(eventually([&] { return leaves() == 0; }));
}

TEST_F(exec, in_a_frozen_container_is_refused) {
    if (group_.plan().freezer_dir.empty()) GTEST_SKIP() << "cgroup v1 freezer is not here";
    write_all(group_.plan().freezer_dir + "/freezer.state", "FROZEN");
    const auto done = p_.exec("c", "true");
    write_all(group_.plan().freezer_dir + "/freezer.state", "THAWED");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "container c is frozen");
    EXPECT_EQ(done.error().code, code::busy);
}

TEST_F(exec, streams_are_the_callers_own_descriptors) {
    int in[2], out[2];
    ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
    answer<exec_result> done;
    auto plan = pod::exec_shell("cat; exit 4");
    p_.client().exec_streams("c", plan, {.in = in[0], .out = out[1], .err = out[1]}, done.fn());
    ::close(in[0]);
    ::close(out[1]);
    ASSERT_EQ(::write(in[1], "through\n", 8), 8);
    ::close(in[1]);
    ASSERT_TRUE(p_.pump([&] { return done.came(); }));
    ASSERT_TRUE(*done) << done->error().message;
    EXPECT_EQ((*done)->exit_code, 4);
    char bytes[64];
    EXPECT_EQ(::read(out[0], bytes, sizeof bytes), 8);
    EXPECT_EQ(::read(out[0], bytes, sizeof bytes), 0) << "no copy of the writing end is left anywhere";
    ::close(out[0]);
}

TEST_F(exec, signal_and_resize_reach_a_terminal_session) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    base::unique_fd ours(ends[0]);
    auto plan = pod::exec_shell(
        "trap 'stty size' WINCH; trap 'echo usr1; exit 6' USR1; tty; stty size; while :; do usleep 1000; done");
    plan.process.tty = true;
    plan.process.tty_columns = 80;
    plan.process.tty_rows = 24;
    answer<exec_result> done;
    const auto handle = p_.client().exec_streams("c", plan, {.in = ends[1], .out = ends[1]}, done.fn());
    ::close(ends[1]);
    std::string sum;
    const auto saw = [&](const std::string& text) {
        return p_.pump([&] {
            char bytes[512];
            pollfd ready{ours.get(), POLLIN, 0};
            while (::poll(&ready, 1, 0) == 1) {
                const ssize_t n = ::read(ours.get(), bytes, sizeof bytes);
                if (n <= 0) break;
                sum.append(bytes, static_cast<std::size_t>(n));
            }
            return sum.find(text) != std::string::npos;
        });
    };
    ASSERT_TRUE(saw("/dev/pts/0\r\n24 80\r\n")) << sum;
    p_.client().exec_resize(handle, {.columns = 132, .rows = 50});
    ASSERT_TRUE(saw("50 132\r\n")) << sum;
    p_.client().exec_signal(handle, SIGUSR1);
    ASSERT_TRUE(saw("usr1\r\n")) << sum;
    ASSERT_TRUE(p_.pump([&] { return done.came(); }));
    EXPECT_EQ((*done)->exit_code, 6);
}

TEST_F(exec, a_terminal_whose_client_left_is_hung_up) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    auto plan = pod::exec_shell("echo on; sleep 1000");
    plan.process.tty = true;
    answer<exec_result> done;
    p_.client().exec_streams("c", plan, {.in = ends[1], .out = ends[1]}, done.fn());
    ::close(ends[1]);
    char bytes[16];
    ASSERT_GT(::read(ends[0], bytes, sizeof bytes), 0);
    ::close(ends[0]);
    ASSERT_TRUE(p_.pump([&] { return done.came(); }));
    EXPECT_EQ((*done)->exit_code, 128 + SIGHUP);
}

TEST_F(exec, kill_by_handle_takes_the_tree) {
    const std::string mark = "8" + std::to_string(::getpid()) + "6";
    answer<exec_result> done;
    const auto handle =
        p_.client().exec_captured("c", pod::exec_shell("setsid sleep " + mark + " & sleep " + mark), done.fn());
    ASSERT_TRUE(p_.pump([&] { return processes_with(mark) >= 2; }));
    p_.client().exec_signal(handle, SIGKILL);
    ASSERT_TRUE(p_.pump([&] { return done.came(); }));
    EXPECT_EQ((*done)->exit_code, 137);
    EXPECT_TRUE(eventually([&] { return processes_with(mark) == 0; }));
}

TEST_F(exec, ends_with_the_container) {
    answer<exec_result> done;
    p_.client().exec_captured("c", pod::exec_shell("echo on; sleep 1000"), done.fn());
    ASSERT_TRUE(p_.pump([&] { return leaves() == 1; }));
    ASSERT_TRUE(p_.signal("c", SIGKILL));
    ASSERT_TRUE(p_.wait_exit("c")) << "the kernel waits for us to reap the command before it lets the container end";
    ASSERT_TRUE(p_.pump([&] { return done.came(); }));
}

} // namespace
} // namespace gantry::cri_native::launch::testing
