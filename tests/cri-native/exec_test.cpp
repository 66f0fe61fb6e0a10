// Commands in running containers, attached streams, forwarded ports.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/unique_fd.hpp"
#include "tests/cri-native/one_pod.hpp"

namespace gantry::cri_native::testing {
namespace {

using base::unique_fd;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Reads once, within `patience`; the end of the stream, an error and silence all give 0.
std::size_t read_some(int fd, char* into, std::size_t size) {
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(std::chrono::milliseconds(patience).count())) <= 0) return 0;
    const ssize_t n = ::read(fd, into, size);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::string drain(int fd) {
    std::string all;
    char buffer[4096];
    for (std::size_t n; (n = read_some(fd, buffer, sizeof buffer)) > 0;) all.append(buffer, n);
    return all;
}

struct pipe_pair {
    unique_fd read;
    unique_fd write;
    pipe_pair() {
        int fds[2];
        if (::pipe2(fds, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
        read.reset(fds[0]);
        write.reset(fds[1]);
    }
};

struct socket_pair {
    unique_fd ours;
    unique_fd theirs;
    explicit socket_pair(int type) {
        int fds[2];
        if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) != 0) throw std::runtime_error("socketpair");
        ours.reset(fds[0]);
        theirs.reset(fds[1]);
    }
};

class commands : public one_pod {
protected:
    void SetUp() override {
        one_pod::SetUp();
        ASSERT_FALSE(HasFatalFailure());
        auto id = node_.launch(pod_, node_.shell("c", "exec sleep 100000"));
        ASSERT_TRUE(id) << id.error().message;
        id_ = *id;
    }
    void TearDown() override {
        EXPECT_TRUE(node_.remove_pod(pod_));
        EXPECT_THAT(node_.leftovers(), IsEmpty());
        EXPECT_THAT(node_.misbehaviour(), IsEmpty());
    }
    std::string id_;
};

TEST_F(commands, give_output_and_exit_code) {
    const auto done = node_.exec(id_, {"sh", "-c", "echo out; echo err >&2; echo $IMAGE; exit 5"});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->stdout(), "out\nyes\n");
    EXPECT_EQ(done->stderr(), "err\n");
    EXPECT_EQ(done->exit_code(), 5);
}

TEST_F(commands, see_the_containers_world) {
    const auto done =
        node_.exec(id_, {"sh", "-c", "hostname; grep -l 1000[0]0 /proc/[0-9]*/cmdline | wc -l; echo made > /file"});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->stdout(), "web\n1\n");
    EXPECT_EQ(node_.exec(id_, {"cat", "/file"})->stdout(), "made\n");
}

TEST_F(commands, give_large_output_whole) {
    const auto done = node_.exec(id_, {"sh", "-c", "seq 1 200000 | md5sum; seq 1 200000"});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->stdout().size(), 36u + 1288895u);
}

TEST_F(commands, are_killed_with_all_they_started_at_their_timeout) {
    const auto before = node_.processes(id_).size();
    const auto done = node_.exec(id_, {"sh", "-c", "sleep 10000 & setsid sleep 10000 & sleep 10000"}, 1);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, code::timeout);
    EXPECT_TRUE(eventually([&] { return node_.processes(id_).size() == before; }));
}

TEST_F(commands, are_killed_when_nobody_waits_any_more) {
    const auto before = node_.processes(id_).size();
    cri::ExecSyncRequest request;
    request.set_container_id(id_);
    for (const auto* word : {"sleep", "10000"}) request.add_cmd(word);
    const auto op = node_.begin(node_.runtime().exec_sync, request.SerializeAsString());
    ASSERT_TRUE(eventually([&] { return node_.processes(id_).size() > before; }));
    node_.cancel(op);
    const auto end = node_.wait(op);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, code::cancelled);
    EXPECT_TRUE(eventually([&] { return node_.processes(id_).size() == before; }));
}

TEST_F(commands, fail_clearly) {
    const auto missing = node_.exec(id_, {"/no/such/program"});
    if (missing)
        EXPECT_NE(missing->exit_code(), 0);
    else
        EXPECT_THAT(missing.error().message, HasSubstr("/no/such/program"));
    EXPECT_EQ(node_.exec("ffffffffffffffffffffffffffffffff", {"true"}).error().code, code::not_found);
    const auto waiting = node_.create(pod_, node_.shell("waiting", "true"));
    ASSERT_TRUE(waiting);
    EXPECT_THAT(node_.exec(*waiting, {"true"}).error().message, HasSubstr("not running"));
}

TEST_F(commands, run_on_the_callers_streams) {
    pipe_pair in, out, err;
    socket_pair control(SOCK_SEQPACKET);
    cri::ExecRequest request;
    request.set_container_id(id_);
    for (const auto* word : {"sh", "-c", "cat; echo err >&2; exit 6"}) request.add_cmd(word);
    request.set_stdin(true);
    request.set_stdout(true);
    request.set_stderr(true);
    const auto op = node_.begin(node_.runtime().exec_stream, request.SerializeAsString(),
                                {in.read.get(), out.write.get(), err.write.get(), control.theirs.get()});
    in.read.reset();
    out.write.reset();
    err.write.reset();
    std::thread writer([&] {
        const std::string text(300'000, 'x');
        EXPECT_EQ(::write(in.write.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
        in.write.reset();
    });
    const auto printed = drain(out.read.get());
    writer.join();
    EXPECT_EQ(printed, std::string(300'000, 'x'));
    EXPECT_EQ(drain(err.read.get()), "err\n");
    const auto end = node_.wait(op);
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(*end, "{\"exitCode\":6}");
}

TEST_F(commands, take_sizes_and_signals_from_the_control_socket) {
    socket_pair terminal(SOCK_STREAM);
    socket_pair control(SOCK_SEQPACKET);
    pipe_pair in;
    cri::ExecRequest request;
    request.set_container_id(id_);
    for (const auto* word : {"sh", "-c",
                             "echo $TERM; until stty size | grep -q '40 120'; do usleep 2000; done; echo sized; trap "
                             "'exit 9' USR1; while :; do usleep 2000; done"})
        request.add_cmd(word);
    request.set_tty(true);
    request.set_stdin(true);
    request.set_stdout(true);
    const auto op = node_.begin(node_.runtime().exec_stream, request.SerializeAsString(),
                                {in.read.get(), terminal.theirs.get(), control.theirs.get()});
    terminal.theirs.reset();
    const std::string size = R"({"resize":{"width":120,"height":40}})";
    ASSERT_GT(::send(control.ours.get(), size.data(), size.size(), 0), 0);
    std::string seen;
    char buffer[256];
    while (seen.find("sized") == std::string::npos) {
        const std::size_t n = read_some(terminal.ours.get(), buffer, sizeof buffer);
        ASSERT_GT(n, 0u) << seen;
        seen.append(buffer, n);
    }
    EXPECT_THAT(seen, HasSubstr("xterm"));
    const std::string signal = R"({"signal":10})";
    ASSERT_TRUE(eventually([&] { // the trap may not be set yet
        ::send(control.ours.get(), signal.data(), signal.size(), MSG_NOSIGNAL);
        return node_.wait(op, 50ms).ok();
    }));
}

TEST_F(commands, joins_a_containers_own_streams) {
    auto config = node_.shell("interactive", "while read line; do echo got $line; done");
    config.set_stdin(true);
    config.set_stdin_once(true);
    const auto id = node_.launch(pod_, config);
    ASSERT_TRUE(id) << id.error().message;
    pipe_pair in, out, err;
    socket_pair control(SOCK_SEQPACKET);
    cri::AttachRequest request;
    request.set_container_id(*id);
    request.set_stdin(true);
    request.set_stdout(true);
    request.set_stderr(true);
    const auto op = node_.begin(node_.runtime().attach_stream, request.SerializeAsString(),
                                {in.read.get(), out.write.get(), err.write.get(), control.theirs.get()});
    in.read.reset();
    out.write.reset();
    err.write.reset();
    ASSERT_GT(::write(in.write.get(), "one\n", 4), 0);
    char buffer[64] = {};
    ASSERT_GT(read_some(out.read.get(), buffer, sizeof buffer - 1), 0u);
    EXPECT_STREQ(buffer, "got one\n");
    in.write.reset();
    ASSERT_TRUE(node_.wait(op)) << "attach did not end with the container";
    EXPECT_TRUE(node_.wait_exit(*id));
    EXPECT_EQ(node_.log(*id), "got one\n");
}

TEST_F(commands, reach_ports_inside_the_pod) {
    const auto server = node_.launch(pod_, node_.shell("server", "nc -l -p 8080 -e cat"));
    ASSERT_TRUE(server) << server.error().message;
    const auto listens = [&] {
        return node_.exec(id_, {"sh", "-c", "cat /proc/net/tcp /proc/net/tcp6 | grep -q :1F90"})->exit_code() == 0;
    };
    ASSERT_TRUE(eventually(listens));
    socket_pair stream(SOCK_STREAM);
    cri::PortForwardRequest request;
    request.set_pod_sandbox_id(pod_);
    request.add_port(8080);
    const auto op = node_.begin(node_.runtime().port_forward, request.SerializeAsString(), {stream.theirs.get()});
    stream.theirs.reset();
    std::thread writer([&] {
        const std::string text(200'000, 'y');
        EXPECT_EQ(::write(stream.ours.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
        ::shutdown(stream.ours.get(), SHUT_WR);
    });
    EXPECT_EQ(drain(stream.ours.get()).size(), 200'000u);
    writer.join();
    EXPECT_TRUE(node_.wait(op));
    socket_pair other(SOCK_STREAM);
    request.set_port(0, 9);
    const auto refused =
        node_.wait(node_.begin(node_.runtime().port_forward, request.SerializeAsString(), {other.theirs.get()}));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("port 9"));
}

} // namespace
} // namespace gantry::cri_native::testing
