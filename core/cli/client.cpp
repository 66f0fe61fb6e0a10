#include "core/cli/client.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "core/admin/frames.hpp"

namespace gantry::core::cli {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using socket_type = asio::local::stream_protocol::socket;

namespace {

constexpr std::uint64_t max_answer = 1u << 30;

result<socket_type> connect(asio::io_context& io, const std::string& path) {
    socket_type socket(io);
    error_code ec;
    socket.connect(path, ec);
    if (!ec) return socket;
    auto e = sys_error("connect to the node at " + path, ec.value());
    e.message += "; is `gantry run` up, and is --socket its node.socket?";
    return e;
}

result<void> send(socket_type& socket, std::string_view method, std::string_view target, std::string_view body,
                  std::string_view upgrade = {}) {
    http::request<http::string_body> request;
    request.method_string({method.data(), method.size()});
    request.target({target.data(), target.size()});
    request.version(11);
    request.set(http::field::host, "gantry");
    if (!upgrade.empty()) {
        request.set(http::field::connection, "Upgrade");
        request.set(http::field::upgrade, {upgrade.data(), upgrade.size()});
    }
    request.body() = std::string(body);
    request.prepare_payload();
    error_code ec;
    http::write(socket, request, ec);
    if (ec) return sys_error("send to the node", ec.value());
    return {};
}

code code_named(std::string_view name) {
    for (int i = 0; i <= GANTRY_INTERNAL; ++i)
        if (to_string(static_cast<code>(i)) == name) return static_cast<code>(i);
    return code::internal;
}

error failure(unsigned status, std::string_view body) {
    error e{.code = code::internal, .message = "the node answered " + std::to_string(status)};
    if (auto json = base::parse_json(body, "answer"); json && json->is_object()) {
        const auto& object = json->get_object();
        e.code = code_named(base::string_at(object, "code"));
        if (auto message = base::string_at(object, "message"); !message.empty()) e.message = std::move(message);
    } else if (!body.empty()) {
        e.message = std::string(body.substr(0, body.find('\n')));
    }
    return e;
}

error broken(const error_code& ec) {
    return {.code = code::unavailable, .message = "the connection to the node broke: " + ec.message()};
}

} // namespace

admin_client::admin_client(std::string socket_path) : socket_path_(std::move(socket_path)) {}

result<std::string> admin_client::call(std::string_view method, std::string_view target, std::string_view body) {
    std::string answer;
    GANTRY_CHECK(stream(method, target, body, [&](std::string_view bytes) {
        answer.append(bytes);
        return true;
    }));
    return answer;
}

result<base::json::value> admin_client::call_json(std::string_view method, std::string_view target,
                                                  std::string_view body) {
    GANTRY_TRY(const auto text, call(method, target, body));
    return base::parse_json(text, "the node's answer");
}

result<void> admin_client::stream(std::string_view method, std::string_view target, std::string_view body,
                                  const std::function<bool(std::string_view)>& on_bytes) {
    asio::io_context io;
    GANTRY_TRY(auto socket, connect(io, socket_path_));
    GANTRY_CHECK(send(socket, method, target, body));
    boost::beast::flat_buffer buffer;
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(max_answer);
    error_code ec;
    http::read_header(socket, buffer, parser, ec);
    if (ec) return broken(ec);
    const unsigned status = parser.get().result_int();
    std::string problem;
    char piece[16384];
    while (!parser.is_done()) {
        parser.get().body().data = piece;
        parser.get().body().size = sizeof piece;
        http::read_some(socket, buffer, parser, ec);
        if (ec == http::error::need_buffer) ec = {};
        if (ec) return broken(ec);
        const std::string_view bytes(piece, sizeof piece - parser.get().body().size);
        if (bytes.empty()) continue;
        if (status / 100 != 2)
            problem.append(bytes);
        else if (!on_bytes(bytes))
            return {};
    }
    if (status / 100 != 2) return failure(status, problem);
    return {};
}

result<void> admin_client::stream_json(std::string_view method, std::string_view target, std::string_view body,
                                       const std::function<bool(const base::json::value&)>& on_item) {
    std::string pending;
    result<void> outcome;
    auto streamed = stream(method, target, body, [&](std::string_view bytes) {
        pending.append(bytes);
        for (std::size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1)) {
            auto item = base::parse_json(std::string_view(pending).substr(0, end), "the node's stream");
            if (!item) outcome = std::move(item).error();
            if (!outcome || !on_item(*item)) return false;
        }
        return true;
    });
    return outcome ? std::move(streamed) : std::move(outcome);
}

result<base::unique_fd> admin_client::upgrade(std::string_view method, std::string_view target, std::string_view body) {
    asio::io_context io;
    GANTRY_TRY(auto socket, connect(io, socket_path_));
    GANTRY_CHECK(send(socket, method, target, body, admin::stream_protocol_name));
    // Byte by byte up to the blank line: what follows belongs to the stream, not to this reader.
    std::string head;
    error_code ec;
    while (!head.ends_with("\r\n\r\n")) {
        char c;
        asio::read(socket, asio::buffer(&c, 1), ec);
        if (ec) return broken(ec);
        head += c;
        if (head.size() > 16384) return error{.code = code::internal, .message = "the node's answer has no end of head"};
    }
    http::response_parser<http::string_body> parser;
    parser.skip(head.starts_with("HTTP/1.1 101"));
    parser.put(asio::buffer(head), ec);
    if (ec && ec != http::error::need_more) return broken(ec);
    if (parser.get().result_int() != 101) {
        boost::beast::flat_buffer buffer;
        http::read(socket, buffer, parser, ec);
        return failure(parser.get().result_int(), parser.get().body());
    }
    return base::unique_fd(socket.release());
}

std::string url_encode(std::string_view text) {
    static constexpr char digits[] = "0123456789ABCDEF";
    std::string out;
    for (const unsigned char c : text) {
        if (std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~') {
            out += static_cast<char>(c);
        } else {
            out += '%';
            out += digits[c >> 4];
            out += digits[c & 15];
        }
    }
    return out;
}

} // namespace gantry::core::cli
