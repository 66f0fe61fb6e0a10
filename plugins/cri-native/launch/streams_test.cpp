// Logs, attach, input and terminals.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <regex>

#include "base/files.hpp"
#include "plugins/cri-native/launch/testing.hpp"

namespace gantry::cri_native::launch::testing {
namespace {

struct pipe_ends {
    base::unique_fd read;
    base::unique_fd write;
    pipe_ends() {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        read.reset(ends[0]);
        write.reset(ends[1]);
    }
};

std::string drain(int fd) {
    std::string out;
    char bytes[65536];
    for (;;) {
        pollfd ready{fd, POLLIN, 0};
        if (::poll(&ready, 1, 0) != 1) return out;
        const ssize_t n = ::read(fd, bytes, sizeof bytes);
        if (n <= 0) return out;
        out.append(bytes, static_cast<std::size_t>(n));
    }
}

void send(int fd, const std::string& text) {
    ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

class streams : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_FALSE(p_.failure()) << p_.failure()->message; }

    /// Attaches; the result appears in attached_ when the supervisor is done with it.
    void attach(const std::string& id, stdio io) { p_.client().attach(id, io, attached_.fn()); }
    bool got(const std::string& text, int fd, std::string& sum) {
        return p_.pump([&] { return (sum += drain(fd)).find(text) != std::string::npos; });
    }

    pod p_;
    answer<void> attached_;
};

TEST_F(streams, log_lines_have_time_stream_and_tag) {
    ASSERT_TRUE(p_.run(p_.shell("c", "echo one; printf 'no newline'")));
    std::ifstream file(p_.log_path("c"));
    const std::regex form(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stdout F (one|no newline))");
    int lines = 0;
    for (std::string text; std::getline(file, text); ++lines) EXPECT_TRUE(std::regex_match(text, form)) << text;
    EXPECT_EQ(lines, 2);
    struct stat st {};
    ASSERT_EQ(::stat(p_.log_path("c").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0640u);
}

// cases.md 32
TEST_F(streams, a_long_line_is_cut_into_pieces_and_joins_again) {
    ASSERT_TRUE(p_.run(p_.shell("c", "head -c 100000 /dev/zero | tr '\\0' x; echo; echo next")));
    EXPECT_EQ(p_.log("c"), std::string(100000, 'x') + "\nnext\n");
    std::ifstream file(p_.log_path("c"));
    std::size_t longest = 0;
    int pieces = 0;
    for (std::string text; std::getline(file, text);) {
        longest = std::max(longest, text.size());
        pieces += text.find(" P ") != std::string::npos;
    }
    EXPECT_EQ(pieces, 100000 / 16384);
    EXPECT_LE(longest, 16384u + 64);
}

TEST_F(streams, every_byte_value_reaches_the_log) {
    ASSERT_TRUE(p_.run(p_.shell("c", "for i in $(seq 1 255); do printf \"\\\\x$(printf %x $i)\"; done; echo")));
    std::string all;
    for (int i = 1; i < 256; ++i) all += static_cast<char>(i);
    EXPECT_EQ(p_.log("c"), all + "\n");
}

// cases.md 42
TEST_F(streams, nothing_of_a_large_output_is_lost_at_exit) {
    ASSERT_TRUE(p_.run(p_.shell("c", "seq 1 200000")));
    std::string all;
    for (int i = 1; i <= 200000; ++i) all += std::to_string(i) + "\n";
    EXPECT_TRUE(p_.log("c") == all) << p_.log("c").size() << " of " << all.size() << " bytes";
}

TEST_F(streams, rotation_loses_and_repeats_nothing) {
    ASSERT_TRUE(p_.create_and_start(p_.shell("c", "for i in $(seq 1 20000); do echo $i; done; echo end")));
    std::string sum;
    for (int part = 0; part < 5; ++part) {
        const std::string rotated = p_.log_path("c") + "." + std::to_string(part);
        ASSERT_EQ(::rename(p_.log_path("c").c_str(), rotated.c_str()), 0);
        ASSERT_TRUE(p_.await<void>([&](auto done) { p_.client().reopen_log("c", done); }));
        sum += log_text(rotated);
    }
    ASSERT_TRUE(p_.wait_exit("c"));
    sum += p_.log("c");
    std::string all;
    for (int i = 1; i <= 20000; ++i) all += std::to_string(i) + "\n";
    EXPECT_TRUE(sum == all + "end\n") << sum.size();
}

TEST_F(streams, a_full_disk_costs_lines_and_not_the_container) {
    const std::string small = p_.dir() / "small";
    ASSERT_TRUE(base::make_dirs(small));
    ASSERT_EQ(::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k"), 0);
    auto plan = p_.shell(
        "c", "seq 1 30000; echo full > /dev/shm/full; while test -e /dev/shm/full; do usleep 1000; done; echo after");
    plan.log_path = small + "/log";
    ASSERT_TRUE(p_.create_and_start(plan));
    ASSERT_TRUE(eventually([&] { return base::read_file(p_.run_dir() + "/shm/full").ok(); })) << "it went on";
    ASSERT_EQ(::unlink(plan.log_path.c_str()), 0);
    ASSERT_TRUE(p_.await<void>([&](auto done) { p_.client().reopen_log("c", done); })); // room again
    ASSERT_EQ(::unlink((p_.run_dir() + "/shm/full").c_str()), 0);
    const auto end = p_.wait_exit("c");
    ASSERT_TRUE(end);
    EXPECT_EQ(end->exit_code, 0);
    EXPECT_GT(end->log_dropped, 50000u);
    const std::string text = log_text(plan.log_path);
    EXPECT_NE(text.find("bytes of log lost here: the disk was full\nafter\n"), std::string::npos) << text;
    EXPECT_TRUE(::umount2(small.c_str(), MNT_DETACH) == 0);
}

TEST_F(streams, attached_clients_all_get_the_output_and_the_log_too) {
    ASSERT_TRUE(p_.create(p_.shell("c", "echo out; echo err >&2")));
    pipe_ends out1, err1, out2;
    attach("c", {.out = out1.write.get(), .err = err1.write.get()});
    answer<void> second;
    p_.client().attach("c", {.out = out2.write.get()}, second.fn());
    for (auto* fd : {&out1.write, &err1.write, &out2.write}) fd->reset();
    ASSERT_TRUE(p_.start("c"));
    ASSERT_TRUE(p_.wait_exit("c"));
    ASSERT_TRUE(p_.pump([&] { return attached_.came() && second.came(); })) << "done when the output ended";
    EXPECT_TRUE(attached_->ok());
    EXPECT_EQ(drain(out1.read.get()), "out\n");
    EXPECT_EQ(drain(err1.read.get()), "err\n");
    EXPECT_EQ(drain(out2.read.get()), "out\n");
    EXPECT_EQ(p_.log("c", "stdout"), "out\n");
}

TEST_F(streams, input_reaches_the_container_and_ends_once) {
    auto plan = p_.shell("c", "cat; echo ended");
    plan.stdin_open = plan.stdin_once = true;
    ASSERT_TRUE(p_.create_and_start(plan));
    pipe_ends in;
    attach("c", {.in = in.read.get()});
    in.read.reset();
    send(in.write.get(), "some input\n");
    in.write.reset();
    ASSERT_TRUE(p_.wait_exit("c"));
    EXPECT_EQ(p_.log("c"), "some input\nended\n");
    EXPECT_TRUE(p_.pump([&] { return attached_.came(); }));
}

TEST_F(streams, input_stays_open_for_the_next_client_without_stdin_once) {
    auto plan = p_.shell("c", "read a; read b; echo $a $b");
    plan.stdin_open = true;
    ASSERT_TRUE(p_.create_and_start(plan));
    for (const char* text : {"first\n", "second\n"}) {
        pipe_ends in;
        attached_.forget();
        attach("c", {.in = in.read.get()});
        in.read.reset();
        send(in.write.get(), text);
        in.write.reset();
        ASSERT_TRUE(p_.pump([&] { return attached_.came(); }));
    }
    ASSERT_TRUE(p_.wait_exit("c"));
    EXPECT_EQ(p_.log("c"), "first second\n");
}

TEST_F(streams, without_stdin_a_container_reads_the_end_at_once) {
    ASSERT_TRUE(p_.run(p_.shell("c", "cat; echo ended")));
    EXPECT_EQ(p_.log("c"), "ended\n");
}

TEST_F(streams, a_large_input_passes_whole) {
    auto plan = p_.shell("c", "wc -c");
    plan.stdin_open = plan.stdin_once = true;
    ASSERT_TRUE(p_.create_and_start(plan));
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    attach("c", {.in = ends[0]});
    ::close(ends[0]);
    base::unique_fd in(ends[1]);
    const std::string block(8192, 'x');
    for (int i = 0; i < 128; ++i) send(in.get(), block);
    in.reset();
    ASSERT_TRUE(p_.wait_exit("c"));
    EXPECT_EQ(p_.log("c"), "1048576\n");
}

TEST_F(streams, a_client_that_goes_away_is_let_go) {
    ASSERT_TRUE(p_.create_and_start(p_.shell("c", "sleep 1000")));
    pipe_ends out;
    attach("c", {.out = out.write.get()});
    out.write.reset();
    out.read.reset(); // without a word
    EXPECT_TRUE(p_.pump([&] { return attached_.came(); }));
}

TEST_F(streams, a_client_that_does_not_read_delays_and_then_gets_everything) {
    ASSERT_TRUE(p_.create(p_.shell("c", "seq 1 60000")));
    pipe_ends out;
    attach("c", {.out = out.write.get()});
    out.write.reset();
    ASSERT_TRUE(p_.start("c"));
    EXPECT_FALSE(p_.wait_exit("c", 200ms)) << "its output waits in the pipe";
    std::string sum;
    ASSERT_TRUE(got("\n60000\n", out.read.get(), sum));
    std::string all;
    for (int i = 1; i <= 60000; ++i) all += std::to_string(i) + "\n";
    EXPECT_TRUE(sum == all) << sum.size();
    ASSERT_TRUE(p_.wait_exit("c"));
    EXPECT_TRUE(p_.log("c") == all);
}

TEST_F(streams, a_terminal_has_its_size_and_can_be_resized) {
    auto plan = p_.shell("c", "stty size; read x; stty size; test -t 0 -a -t 1 -a -t 2 && echo terminal; tty");
    plan.process.tty = true;
    plan.process.tty_columns = 100;
    plan.process.tty_rows = 30;
    plan.stdin_open = true;
    ASSERT_TRUE(p_.create_and_start(plan));
    ASSERT_TRUE(eventually([&] { return p_.log("c") == "30 100\r\n"; }));
    ASSERT_TRUE(p_.await<void>([&](auto done) { p_.client().resize("c", {.columns = 120, .rows = 40}, done); }));
    pipe_ends in, out;
    attach("c", {.in = in.read.get(), .out = out.write.get()});
    out.write.reset();
    send(in.write.get(), "\n");
    std::string sum;
    EXPECT_TRUE(got("/dev/pts/0", out.read.get(), sum)) << sum;
    EXPECT_NE(sum.find("40 120\r\nterminal\r\n"), std::string::npos) << sum;
    ASSERT_TRUE(p_.wait_exit("c"));
    EXPECT_TRUE(p_.pump([&] { return attached_.came(); }));
}

TEST_F(streams, a_terminal_turns_control_c_into_a_signal) {
    auto plan = p_.shell("c", "trap 'echo interrupted; exit 9' INT; echo ready; while :; do usleep 1000; done");
    plan.process.tty = true;
    plan.stdin_open = true;
    ASSERT_TRUE(p_.create_and_start(plan));
    ASSERT_TRUE(eventually([&] { return p_.log("c") == "ready\r\n"; }));
    pipe_ends in;
    attach("c", {.in = in.read.get()});
    send(in.write.get(), "\x03");
    const auto end = p_.wait_exit("c");
    ASSERT_TRUE(end);
    EXPECT_EQ(end->exit_code, 9);
}

} // namespace
} // namespace gantry::cri_native::launch::testing
