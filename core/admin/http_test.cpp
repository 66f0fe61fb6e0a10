#include "core/admin/http.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/unique_fd.hpp"

namespace gantry::core::admin {
namespace {

namespace asio = boost::asio;

TEST(router, matches_names_and_rests) {
    router routes;
    std::string seen;
    routes.add("GET", "/v1/pods/{namespace}/{name}", [](http_request, responder&) -> asio::awaitable<void> { co_return; });
    routes.add("DELETE", "/v1/images/{ref...}", [](http_request, responder&) -> asio::awaitable<void> { co_return; });
    const auto pod = routes.find("GET", "/v1/pods/default/web");
    ASSERT_NE(pod.found, nullptr);
    EXPECT_EQ(pod.params.at("namespace"), "default");
    EXPECT_EQ(pod.params.at("name"), "web");
    EXPECT_EQ(routes.find("DELETE", "/v1/images/docker.io/library/nginx:1").params.at("ref"), "docker.io/library/nginx:1");
}

TEST(router, tells_a_wrong_method_from_an_unknown_path) {
    router routes;
    routes.add("GET", "/healthz", [](http_request, responder&) -> asio::awaitable<void> { co_return; });
    EXPECT_TRUE(routes.find("POST", "/healthz").path_known);
    EXPECT_FALSE(routes.find("GET", "/health").path_known);
    EXPECT_EQ(routes.find("GET", "/healthz/x").found, nullptr);
}

TEST(percent_decode, refuses_broken_escapes) {
    EXPECT_EQ(percent_decode("a%2Fb+c", true), "a/b c");
    EXPECT_EQ(percent_decode("a+c", false), "a+c");
    EXPECT_FALSE(percent_decode("%", false));
    EXPECT_FALSE(percent_decode("%g0", false));
    EXPECT_FALSE(percent_decode("%2", false));
}

/// A server on a thread, spoken to with raw bytes as curl would.
class running_server : public testing::Test {
protected:
    running_server() {
        char name[] = "/tmp/gantry-http-XXXXXX";
        directory = ::mkdtemp(name);
        path = directory + "/sock";
        routes.add("GET", "/hello/{who}", [](http_request r, responder& to) -> asio::awaitable<void> {
            co_await to.reply(200, "text/plain", "hello " + r.params["who"] + r.query_or("mark", ""));
        });
        routes.add("POST", "/echo", [](http_request r, responder& to) -> asio::awaitable<void> {
            co_await to.reply(200, "text/plain", r.body);
        });
        routes.add("GET", "/stream", [](http_request, responder& to) -> asio::awaitable<void> {
            co_await to.begin_stream("text/plain");
            co_await to.write("one");
            co_await to.write("two");
        });
        routes.add("GET", "/throws", [](http_request, responder&) -> asio::awaitable<void> {
            throw std::runtime_error("broken inside");
            co_return;
        });
        routes.add("GET", "/wait", [this](http_request, responder& to) -> asio::awaitable<void> {
            co_await to.begin_stream("text/plain");
            co_await to.closed();
            left = true;
        });
        routes.add("POST", "/raw", [](http_request, responder& to) -> asio::awaitable<void> {
            auto socket = co_await to.upgrade("test-stream");
            if (!socket) co_return;
            co_await asio::async_write(*socket, asio::buffer("raw bytes", 9), asio::use_awaitable);
        });
        EXPECT_TRUE(server.listen(path));
        thread = std::thread([this] { loop.run(); });
    }
    ~running_server() override {
        asio::post(loop, [this] { server.stop(); });
        thread.join();
        ::unlink(path.c_str());
        ::rmdir(directory.c_str());
    }

    base::unique_fd connect() const {
        base::unique_fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        return fd;
    }
    /// Sends, closes the sending side, reads to the end.
    std::string talk(const std::string& text) const {
        auto fd = connect();
        EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
        ::shutdown(fd.get(), SHUT_WR);
        std::string answer;
        char buffer[4096];
        for (ssize_t n; (n = ::read(fd.get(), buffer, sizeof buffer)) > 0;) answer.append(buffer, static_cast<std::size_t>(n));
        return answer;
    }

    std::string directory, path;
    std::atomic<bool> left = false;
    asio::io_context loop;
    router routes;
    http_server server{loop, routes};
    std::thread thread;
};

TEST_F(running_server, answers_a_request_with_decoded_path_and_query) {
    const auto answer = talk("GET /hello/a%20b?mark=%21 HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
    EXPECT_TRUE(answer.ends_with("hello a b!")) << answer;
}

TEST_F(running_server, keeps_the_connection_for_the_next_request) {
    const auto answer = talk("GET /hello/1 HTTP/1.1\r\nHost: x\r\n\r\nGET /hello/2 HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(answer.find("hello 1"), std::string::npos);
    EXPECT_NE(answer.find("hello 2"), std::string::npos);
}

TEST_F(running_server, streams_in_chunks_and_ends_them) {
    const auto answer = talk("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")) << answer;
}

TEST_F(running_server, says_what_is_wrong_with_a_request) {
    EXPECT_TRUE(talk("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 404"));
    EXPECT_TRUE(talk("PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").starts_with("HTTP/1.1 405"));
    EXPECT_TRUE(talk("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 400"));
    EXPECT_TRUE(talk("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n").starts_with("HTTP/1.1 413"));
    EXPECT_TRUE(talk("POST /raw HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").starts_with("HTTP/1.1 426"));
}

TEST_F(running_server, turns_an_exception_into_a_500) {
    const auto answer = talk("GET /throws HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 500")) << answer;
    EXPECT_NE(answer.find("broken inside"), std::string::npos);
}

TEST_F(running_server, hands_over_an_upgraded_connection) {
    const auto answer =
        talk("POST /raw HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: test-stream\r\nContent-Length: 0\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 101")) << answer;
    EXPECT_TRUE(answer.ends_with("raw bytes")) << answer;
}

TEST_F(running_server, notices_a_client_that_leaves_a_stream) {
    {
        auto fd = connect();
        const std::string text = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n";
        ASSERT_EQ(::send(fd.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
        char byte;
        ASSERT_EQ(::read(fd.get(), &byte, 1), 1); // the head has come: the handler waits
    }
    for (int i = 0; i < 500 && !left; ++i) ::usleep(10000);
    EXPECT_TRUE(left);
}

TEST_F(running_server, survives_garbage) {
    (void)talk(std::string("\x16\x03\x01\x00garbage\r\n\r\n", 15));
    EXPECT_TRUE(talk("GET /hello/x HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST_F(running_server, is_only_for_its_owner) {
    struct stat st {};
    ASSERT_EQ(::stat(path.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST_F(running_server, refuses_a_path_that_another_process_serves) {
    http_server second(loop, routes);
    const auto refused = second.listen(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, code::exists);
}

TEST(http_server, replaces_a_stale_socket_file) {
    char name[] = "/tmp/gantry-http-XXXXXX";
    const std::string directory = ::mkdtemp(name);
    const std::string path = directory + "/sock";
    std::ofstream(path) << "stale";
    asio::io_context loop;
    router routes;
    http_server server(loop, routes);
    EXPECT_TRUE(server.listen(path));
    server.stop();
    EXPECT_EQ(::access(path.c_str(), F_OK), -1);
    ::rmdir(directory.c_str());
}

TEST(http_server, names_the_limit_of_a_long_path) {
    asio::io_context loop;
    router routes;
    http_server server(loop, routes);
    const auto refused = server.listen("/tmp/" + std::string(120, 'x'));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("107"), std::string::npos);
}

} // namespace
} // namespace gantry::core::admin
