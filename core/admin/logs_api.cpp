// /v1/logs: a container's log as plain bytes. The reader blocks, so each answer has a thread of its own; it waits for the
// client to take a piece before it reads the next.
#include <sys/eventfd.h>

#include <atomic>
#include <future>
#include <thread>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/time.hpp"
#include "base/unique_fd.hpp"
#include "core/admin/api.hpp"
#include "core/kernel/node.hpp"
#include "core/logs/log_reader.hpp"

namespace gantry::core::admin {

namespace asio = boost::asio;
using namespace boost::asio::experimental::awaitable_operators;

namespace {

using piece_channel = asio::experimental::concurrent_channel<void(boost::system::error_code, std::string)>;

/// What the reader's thread and the handler share.
struct log_stream {
    explicit log_stream(asio::io_context& loop) : pieces(loop, 4), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

    piece_channel pieces;
    base::unique_fd wake;
    std::atomic<bool> ended = false;   ///< the container run is over
    std::atomic<bool> refused = false; ///< the client left
    bool at_end = false;               ///< the reader has sent its last piece (handler's side)
    result<void> outcome;

    void end_now(std::atomic<bool>& why) {
        why = true;
        (void)::eventfd_write(wake.get(), 1);
    }
};

void read_into(const std::shared_ptr<log_stream>& stream, const logs::read_options& options) {
    stream->outcome = logs::read_log(
        options, stream->wake.get(), [&] { return stream->ended.load() || stream->refused.load(); },
        [&](std::string_view bytes) {
            if (stream->refused) return false;
            std::promise<void> sent;
            stream->pieces.async_send({}, std::string(bytes), [&](boost::system::error_code) { sent.set_value(); });
            sent.get_future().wait();
            return !stream->refused;
        });
    stream->pieces.async_send(asio::error::eof, {}, [stream](boost::system::error_code) {});
}

/// "5m", "90s", "2h30m" before now, or an RFC 3339 time, as RFC 3339 UTC.
result<std::string> since_time(const std::string& text, base::wall_time now) {
    if (const auto time = base::parse_rfc3339(text)) return base::format_rfc3339(*time, 9);
    std::int64_t total = 0;
    std::int64_t number = -1;
    bool valid = !text.empty();
    for (const char c : text) {
        if (c >= '0' && c <= '9') {
            number = std::max<std::int64_t>(number, 0) * 10 + (c - '0');
            valid = valid && number < 1'000'000'000;
            continue;
        }
        const std::int64_t unit = c == 's' ? 1 : c == 'm' ? 60 : c == 'h' ? 3600 : 0;
        valid = valid && unit != 0 && number >= 0;
        if (!valid) break;
        total += number * unit;
        number = -1;
    }
    if (!valid || number >= 0)
        return error{.code = code::invalid,
                     .message = "since: \"" + text + "\" is neither a duration (90s, 5m, 2h30m) nor an RFC 3339 time"};
    return base::format_rfc3339(now - std::chrono::seconds(total), 9);
}

/// Directory and attempt of ".../CONTAINER/3.log".
result<logs::read_options> options_of(const std::string& log_path) {
    logs::read_options options;
    const auto slash = log_path.rfind('/');
    if (slash == std::string::npos || !log_path.ends_with(".log"))
        return error{.code = code::internal, .message = "the container's log path \"" + log_path + "\" is not DIR/N.log"};
    options.directory = log_path.substr(0, slash);
    options.attempt = std::atoi(log_path.c_str() + slash + 1);
    return options;
}

/// Completes when the container's run is over.
asio::awaitable<void> run_is_over(node& from, std::string ns, std::string name, std::string container, std::string id) {
    auto changes = from.pod_changes().subscribe();
    for (;;) {
        const auto now = from.find_container(ns, name, container, false);
        if (!now || now->id != id || !now->running) co_return;
        const auto change = co_await changes->next();
        if (!change) co_return;
    }
}

asio::awaitable<void> relay(std::shared_ptr<log_stream> stream, responder& answer) {
    bool begun = false;
    for (;;) {
        boost::system::error_code ec;
        std::string piece = co_await stream->pieces.async_receive(asio::redirect_error(asio::use_awaitable, ec));
        stream->at_end = ec == asio::error::eof;
        if (ec && !begun && !stream->outcome) {
            co_await answer.fail(stream->outcome.error());
            co_return;
        }
        if (!begun) co_await answer.begin_stream("text/plain; charset=utf-8");
        begun = true;
        if (ec) co_return;
        const bool written = co_await answer.write(std::move(piece));
        if (!written) co_return;
    }
}

/// Tells the reader when the run is over; the relay then ends by itself.
asio::awaitable<void> mark_end(std::shared_ptr<log_stream> stream, asio::awaitable<void> over) {
    co_await std::move(over);
    stream->end_now(stream->ended);
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

/// Lets a reader whose answer has ended run out, so that joining its thread does not wait.
asio::awaitable<void> finish_reader(std::shared_ptr<log_stream> stream) {
    stream->end_now(stream->refused);
    while (!stream->at_end) {
        boost::system::error_code ec;
        (void)co_await stream->pieces.async_receive(asio::redirect_error(asio::use_awaitable, ec));
        stream->at_end = ec == asio::error::eof;
    }
}

asio::awaitable<void> serve_logs(api& to, http_request request, responder& answer) {
    const std::string ns = request.params["namespace"];
    const std::string name = request.params["name"];
    const std::string container_name = request.query_or("container", "");
    auto container = to.node.find_container(ns, name, container_name, request.flag("previous"));
    if (!container) {
        co_await answer.fail(container.error());
        co_return;
    }
    auto options = options_of(container->log_path);
    if (options && !request.query_or("since", "").empty()) {
        auto since = since_time(request.query["since"], std::chrono::system_clock::now());
        if (since)
            options->since = *std::move(since);
        else
            options = std::move(since).error();
    }
    if (!options) {
        co_await answer.fail(options.error());
        co_return;
    }
    options->timestamps = request.flag("timestamps");
    options->tail = std::atol(request.query_or("tail", "-1").c_str());
    options->follow = request.flag("follow") && container->running;

    auto stream = std::make_shared<log_stream>(to.loop);
    std::thread reader(read_into, stream, *options);
    if (options->follow)
        co_await (relay(stream, answer) || answer.closed() ||
                  mark_end(stream, run_is_over(to.node, ns, name, container_name, container->id)));
    else
        co_await relay(stream, answer);
    co_await finish_reader(stream);
    reader.join();
}

} // namespace

void add_log_routes(router& routes, api& to) { routes.add("GET", "/v1/logs/{namespace}/{name}", bound(serve_logs, to)); }

} // namespace gantry::core::admin
