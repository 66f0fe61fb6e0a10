// A small HTTP/1.1 server on a unix socket, for the admin API: `curl --unix-socket` works, streams are chunked
// newline-delimited JSON or plain bytes, interactive ones take the connection by Upgrade.
//
// Everything here runs on the core loop. Handlers are coroutines; a connection that ends cancels nothing by itself:
// a streaming handler races its source against responder::closed().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "base/json.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core::admin {

using socket_type = boost::asio::local::stream_protocol::socket;

struct http_request {
    std::string method;
    std::string path;                          ///< decoded, without the query
    std::map<std::string, std::string> query;  ///< decoded; the last of equal names
    std::map<std::string, std::string> params; ///< from the route's {names}
    std::string body;                          ///< at most 1 MiB

    std::string query_or(const std::string& name, std::string fallback) const;
    bool flag(const std::string& name) const; ///< present and not "0" or "false"
};

/// The one answer to a request: a reply, or a stream, or the raw connection.
class responder {
public:
    virtual ~responder() = default;
    virtual boost::asio::awaitable<void> reply(int status, std::string content_type, std::string body) = 0;
    /// Begins a chunked 200 answer.
    virtual boost::asio::awaitable<void> begin_stream(std::string content_type) = 0;
    /// One chunk; false once the client is gone.
    virtual boost::asio::awaitable<bool> write(std::string chunk) = 0;
    /// Completes when the client has closed its end.
    virtual boost::asio::awaitable<void> closed() = 0;
    /// Answers 101 and hands the connection over. nullptr if the client did not ask for `protocol`.
    virtual boost::asio::awaitable<std::unique_ptr<socket_type>> upgrade(std::string protocol) = 0;

    boost::asio::awaitable<void> json(const base::json::value& value);
    /// The error as {"code", "message"} with the HTTP status that fits its code.
    boost::asio::awaitable<void> fail(const error& e);
};

using handler = std::function<boost::asio::awaitable<void>(http_request, responder&)>;

/// Maps "GET /v1/pods/{namespace}/{name}" to handlers; {name...} at the end takes the rest, slashes included.
class router {
public:
    void add(std::string method, std::string pattern, handler h);
    struct match {
        const handler* found = nullptr;
        std::map<std::string, std::string> params;
        bool path_known = false; ///< another method exists for the path: 405 rather than 404
    };
    match find(std::string_view method, std::string_view path) const;

private:
    struct route {
        std::string method;
        std::vector<std::string> parts;
        handler handle;
    };
    std::vector<route> routes_;
};

/// Percent-decoding; nullopt for a malformed escape.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

class http_server {
public:
    /// The router must outlive the server.
    http_server(boost::asio::io_context& loop, const router& routes);
    ~http_server();

    /// Listens on path (0600; a stale socket file is replaced, a live one is an error). Peers other than root and the
    /// process's own user are refused.
    result<void> listen(const std::string& path);
    /// Closes the listener and every connection and removes the socket file.
    void stop();

private:
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace gantry::core::admin
