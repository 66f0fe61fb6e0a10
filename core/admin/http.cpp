#include "core/admin/http.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

namespace gantry::core::admin {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::use_awaitable;
using boost::system::error_code;

namespace {

constexpr std::size_t max_body = 1u << 20;

int http_status(code c) {
    switch (c) {
    case code::ok: return 200;
    case code::invalid: return 400;
    case code::not_found: return 404;
    case code::exists: case code::busy: return 409;
    case code::permission: return 403;
    case code::unsupported: return 501;
    case code::unavailable: return 503;
    case code::timeout: return 504;
    default: return 500;
    }
}

std::optional<http_request> to_request(const http::request<http::string_body>& message) {
    http_request request;
    request.method = std::string(message.method_string());
    const std::string target(message.target());
    const auto mark = target.find('?');
    auto path = percent_decode(std::string_view(target).substr(0, mark), false);
    if (!path) return std::nullopt;
    request.path = std::move(*path);
    std::string_view query = mark == std::string::npos ? std::string_view{} : std::string_view(target).substr(mark + 1);
    while (!query.empty()) {
        const auto end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        const auto equals = std::min(pair.find('='), pair.size());
        auto name = percent_decode(pair.substr(0, equals), true);
        auto value = percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
        if (!name || !value) return std::nullopt;
        request.query[*name] = *value;
    }
    request.body = message.body();
    return request;
}

class connection final : public responder {
public:
    explicit connection(socket_type socket) : socket_(std::move(socket)) {}

    asio::awaitable<void> serve(const router& routes) {
        for (;;) {
            http::request_parser<http::string_body> parser;
            parser.body_limit(max_body);
            error_code ec;
            co_await http::async_read(socket_, buffer_, parser, asio::redirect_error(use_awaitable, ec));
            if (ec) {
                if (ec == http::error::body_limit) co_await reply(413, "text/plain", "the body is larger than 1 MiB\n");
                break;
            }
            message_ = parser.release();
            answered_ = false;
            keep_alive_ = message_.keep_alive();
            auto request = to_request(message_);
            if (!request) {
                co_await reply(400, "text/plain", "malformed percent-escape in the request target\n");
                break;
            }
            co_await dispatch(routes, std::move(*request));
            if (streaming_ && socket_.is_open()) {
                co_await asio::async_write(socket_, http::make_chunk_last(), asio::redirect_error(use_awaitable, ec));
                streaming_ = false;
            }
            if (!socket_.is_open() || !keep_alive_) break;
        }
        close();
    }

    asio::awaitable<void> reply(int status, std::string content_type, std::string body) override {
        http::response<http::string_body> response(static_cast<http::status>(status), 11);
        response.set(http::field::content_type, content_type);
        response.keep_alive(keep_alive_);
        response.body() = std::move(body);
        response.prepare_payload();
        answered_ = true;
        error_code ec;
        co_await http::async_write(socket_, response, asio::redirect_error(use_awaitable, ec));
        if (ec) keep_alive_ = false;
    }

    asio::awaitable<void> begin_stream(std::string content_type) override {
        http::response<http::empty_body> response(http::status::ok, 11);
        response.set(http::field::content_type, content_type);
        response.chunked(true);
        response.keep_alive(keep_alive_);
        http::response_serializer<http::empty_body> serializer(response);
        answered_ = streaming_ = true;
        error_code ec;
        co_await http::async_write_header(socket_, serializer, asio::redirect_error(use_awaitable, ec));
        if (ec) gone_ = true;
    }

    asio::awaitable<bool> write(std::string chunk) override {
        if (gone_ || chunk.empty()) co_return !gone_;
        error_code ec;
        co_await asio::async_write(socket_, http::make_chunk(asio::buffer(chunk)),
                                   asio::redirect_error(use_awaitable, ec));
        if (ec) {
            gone_ = true;
            keep_alive_ = streaming_ = false;
        }
        co_return !gone_;
    }

    asio::awaitable<void> closed() override {
        // A client that speaks again instead of closing is pipelining a request, which a stream cannot answer.
        error_code ec;
        co_await socket_.async_wait(socket_type::wait_read, asio::redirect_error(use_awaitable, ec));
        if (ec != asio::error::operation_aborted) gone_ = true;
        keep_alive_ = false;
    }

    asio::awaitable<std::unique_ptr<socket_type>> upgrade(std::string protocol) override {
        if (message_[http::field::upgrade] != protocol) {
            http::response<http::string_body> response(http::status::upgrade_required, 11);
            response.set(http::field::upgrade, protocol);
            response.body() = "this path needs `Upgrade: " + protocol + "`\n";
            response.prepare_payload();
            answered_ = true;
            error_code ec;
            co_await http::async_write(socket_, response, asio::redirect_error(use_awaitable, ec));
            co_return nullptr;
        }
        http::response<http::empty_body> response(http::status::switching_protocols, 11);
        response.set(http::field::connection, "Upgrade");
        response.set(http::field::upgrade, protocol);
        answered_ = true;
        error_code ec;
        co_await http::async_write(socket_, response, asio::redirect_error(use_awaitable, ec));
        if (ec) co_return nullptr;
        co_return std::make_unique<socket_type>(std::move(socket_));
    }

    void close() {
        error_code ignored;
        socket_.shutdown(socket_type::shutdown_both, ignored);
        socket_.close(ignored);
    }

private:
    asio::awaitable<void> dispatch(const router& routes, http_request request) {
        auto match = routes.find(request.method, request.path);
        if (!match.found) {
            const std::string what = request.method + " " + request.path;
            if (match.path_known)
                co_await reply(405, "text/plain", what + ": this path has other methods\n");
            else
                co_await reply(404, "text/plain", what + ": no such path; see `gantry --help` for what there is\n");
            co_return;
        }
        request.params = std::move(match.params);
        std::string fault = "the handler gave no answer";
        try {
            co_await (*match.found)(std::move(request), *this);
        } catch (const std::exception& e) {
            fault = e.what();
        }
        if (!answered_) co_await reply(500, "text/plain", fault + "\n");
    }

    socket_type socket_;
    boost::beast::flat_buffer buffer_;
    http::request<http::string_body> message_;
    bool answered_ = false;
    bool keep_alive_ = false;
    bool streaming_ = false;
    bool gone_ = false;
};

bool peer_is_trusted(socket_type& socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return peer.uid == 0 || peer.uid == ::geteuid();
}

} // namespace

asio::awaitable<void> responder::json(const base::json::value& value) {
    return reply(200, "application/json", base::to_text(value) + "\n");
}

asio::awaitable<void> responder::fail(const error& e) {
    const base::json::object body{{"code", to_string(e.code)}, {"message", e.message}};
    return reply(http_status(e.code), "application/json", base::to_text(body) + "\n");
}

struct http_server::state {
    state(asio::io_context& loop, const router& routes) : acceptor(loop), routes(routes) {}

    asio::local::stream_protocol::acceptor acceptor;
    const router& routes;
    std::string path;
    std::set<connection*> connections;
    bool stopped = false;

    static asio::awaitable<void> run_connection(std::shared_ptr<state> self, socket_type socket) {
        connection c(std::move(socket));
        self->connections.insert(&c);
        co_await c.serve(self->routes);
        self->connections.erase(&c);
    }

    static asio::awaitable<void> accept_loop(std::shared_ptr<state> self) {
        while (!self->stopped) {
            error_code ec;
            socket_type socket = co_await self->acceptor.async_accept(asio::redirect_error(use_awaitable, ec));
            if (ec) {
                if (self->stopped) break;
                continue;
            }
            if (!peer_is_trusted(socket)) continue;
            asio::co_spawn(self->acceptor.get_executor(), run_connection(self, std::move(socket)), asio::detached);
        }
    }
};

http_server::http_server(asio::io_context& loop, const router& routes)
    : state_(std::make_shared<state>(loop, routes)) {}

http_server::~http_server() { stop(); }

result<void> http_server::listen(const std::string& path) {
    if (path.size() >= sizeof(sockaddr_un{}.sun_path))
        return error{.code = code::invalid,
                     .message = "admin socket path " + path + " has " + std::to_string(path.size()) +
                                " bytes, the kernel's limit is 107; set node.socket to a shorter one"};
    error_code ec;
    {
        socket_type probe(state_->acceptor.get_executor());
        probe.connect(path, ec);
        if (!ec)
            return error{.code = code::exists,
                         .message = "another process serves " + path +
                                    "; stop it, or give this node another node.instance or node.socket"};
    }
    ::unlink(path.c_str());
    // chmod rather than umask, which is the whole process's; until then peer credentials keep strangers out.
    state_->acceptor.open({}, ec);
    if (!ec) state_->acceptor.bind(path, ec);
    if (!ec && ::chmod(path.c_str(), 0600) != 0) ec = error_code(errno, boost::system::generic_category());
    if (!ec) state_->acceptor.listen(asio::socket_base::max_listen_connections, ec);
    if (ec) return sys_error("listen on " + path, ec.value());
    state_->path = path;
    asio::co_spawn(state_->acceptor.get_executor(), state::accept_loop(state_), asio::detached);
    return {};
}

void http_server::stop() {
    if (std::exchange(state_->stopped, true)) return;
    error_code ignored;
    state_->acceptor.close(ignored);
    for (connection* c : std::set(state_->connections)) c->close();
    if (!state_->path.empty()) ::unlink(state_->path.c_str());
}

} // namespace gantry::core::admin
