// /v1/exec: a command in a container, over an upgraded connection (frames.hpp). The core relays between the client and the
// pipes that it hands to the runtime's exec_stream.
#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/unique_fd.hpp"
#include "core/admin/api.hpp"
#include "core/admin/frames.hpp"
#include "core/kernel/node.hpp"
#include "gantry/abi/draft/runtime.h"
#include "proto/cri.pb.h"

namespace gantry::core::admin {

namespace asio = boost::asio;
using asio::use_awaitable;
using namespace boost::asio::experimental::awaitable_operators;
using boost::system::error_code;
using descriptor = asio::posix::stream_descriptor;

namespace {

struct exec_request {
    std::string container;
    std::vector<std::string> command;
    bool with_stdin = false;
    bool tty = false;
};

result<exec_request> parse_exec(const std::string& body) {
    GANTRY_TRY(const auto json, base::parse_json(body, "exec request"));
    const auto* object = json.if_object();
    const auto* command = object ? object->if_contains("command") : nullptr;
    if (!command || !command->is_array() || command->get_array().empty())
        return error{.code = code::invalid, .message = "exec request: command: must be a list of one word or more"};
    exec_request request;
    for (const auto& word : command->get_array()) {
        if (!word.is_string()) return error{.code = code::invalid, .message = "exec request: command: every word must be a string"};
        request.command.emplace_back(word.get_string());
    }
    const auto flag = [&](const char* name) {
        const auto* value = object->if_contains(name);
        return value && value->is_bool() && value->get_bool();
    };
    request.with_stdin = flag("stdin");
    request.tty = flag("tty");
    request.container = base::string_at(*object, "container");
    return request;
}

/// Our ends stay here, the other ends go to the runtime.
struct exec_pipes {
    base::unique_fd to_stdin, from_stdout, from_stderr, control;
    std::vector<base::unique_fd> theirs;

    static result<exec_pipes> make(const exec_request& request) {
        exec_pipes pipes;
        const auto pipe = [&](base::unique_fd& ours, bool we_write) -> result<void> {
            int ends[2];
            if (::pipe2(ends, O_CLOEXEC) != 0) return sys_error("pipe", errno);
            ours.reset(ends[we_write ? 1 : 0]);
            pipes.theirs.emplace_back(ends[we_write ? 0 : 1]);
            return {};
        };
        if (request.with_stdin) GANTRY_CHECK(pipe(pipes.to_stdin, true));
        GANTRY_CHECK(pipe(pipes.from_stdout, false));
        if (!request.tty) GANTRY_CHECK(pipe(pipes.from_stderr, false));
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return sys_error("socketpair", errno);
        pipes.control.reset(ends[0]);
        pipes.theirs.emplace_back(ends[1]);
        return pipes;
    }
};

class exec_session {
public:
    exec_session(asio::io_context& loop, socket_type& client, exec_pipes& pipes)
        : client_(client), stdin_(loop), stdout_(loop), stderr_(loop), control_(std::move(pipes.control)) {
        assign(stdin_, pipes.to_stdin);
        assign(stdout_, pipes.from_stdout);
        assign(stderr_, pipes.from_stderr);
    }

    /// Output of the command to the client, until both ends are closed.
    asio::awaitable<void> send_output() {
        co_await (pump(stdout_, channel::stdout_data) && pump(stderr_, channel::stderr_data));
    }

    /// Frames of the client to the command, until the client leaves.
    asio::awaitable<void> take_input() {
        for (;;) {
            std::array<char, frame_header_size> head{};
            error_code ec;
            co_await asio::async_read(client_, asio::buffer(head), asio::redirect_error(use_awaitable, ec));
            const auto header = decode_header(head);
            if (ec || !header) co_return;
            std::string payload(header->size, '\0');
            co_await asio::async_read(client_, asio::buffer(payload), asio::redirect_error(use_awaitable, ec));
            if (ec) co_return;
            if (header->channel == channel::control) {
                (void)::send(control_.get(), payload.data(), payload.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            } else if (header->channel == channel::stdin_data && stdin_.is_open()) {
                if (!payload.empty()) co_await asio::async_write(stdin_, asio::buffer(payload), asio::redirect_error(use_awaitable, ec));
                if (payload.empty() || ec) stdin_.close(ec);
            }
        }
    }

    asio::awaitable<void> send_frame(channel c, std::string_view payload) {
        const std::string frame = encode_frame(c, payload);
        error_code ec;
        co_await asio::async_write(client_, asio::buffer(frame), asio::redirect_error(use_awaitable, ec));
    }

private:
    static void assign(descriptor& to, base::unique_fd& fd) {
        if (!fd) return;
        ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
        to.assign(fd.release());
    }

    asio::awaitable<void> pump(descriptor& from, channel c) {
        std::string frame(frame_header_size + 32 * 1024, '\0');
        while (from.is_open()) {
            error_code ec;
            const std::size_t n = co_await from.async_read_some(
                asio::buffer(frame.data() + frame_header_size, frame.size() - frame_header_size), asio::redirect_error(use_awaitable, ec));
            if (ec) co_return;
            const auto header = encode_header({c, static_cast<std::uint32_t>(n)});
            std::copy(header.begin(), header.end(), frame.begin());
            // One write per frame: frames of stdout and stderr must not mix on the wire.
            while (writing_) {
                turn_.expires_at(asio::steady_timer::time_point::max());
                co_await turn_.async_wait(asio::redirect_error(use_awaitable, ec));
            }
            writing_ = true;
            co_await asio::async_write(client_, asio::buffer(frame.data(), frame_header_size + n), asio::redirect_error(use_awaitable, ec));
            writing_ = false;
            turn_.cancel();
            if (ec) co_return;
        }
    }

    socket_type& client_;
    descriptor stdin_, stdout_, stderr_;
    base::unique_fd control_;
    asio::steady_timer turn_{client_.get_executor()};
    bool writing_ = false;
};

runtime::v1::ExecRequest cri_request(const exec_request& request, const std::string& container_id) {
    runtime::v1::ExecRequest message;
    message.set_container_id(container_id);
    for (const auto& word : request.command) message.add_cmd(word);
    message.set_stdin(request.with_stdin);
    message.set_stdout(true);
    message.set_stderr(!request.tty);
    message.set_tty(request.tty);
    return message;
}

asio::awaitable<result<op_reply>> run_exec(plugin_client& runtime, op_request call, exec_pipes& pipes, std::string pod) {
    call_options options;
    options.timeout = std::chrono::nanoseconds::max();
    options.pod = std::move(pod);
    auto reply = co_await runtime.call(GANTRY_OP(GANTRY_RUNTIME, gantry_runtime, exec_stream), std::move(call), std::move(options));
    pipes.theirs.clear(); // our copies of the runtime's ends, or output would never end
    co_return reply;
}

asio::awaitable<void> serve_exec(api& to, http_request request, responder& answer) {
    auto wanted = parse_exec(request.body);
    if (!wanted) {
        co_await answer.fail(wanted.error());
        co_return;
    }
    const std::string pod = request.params["namespace"] + "/" + request.params["name"];
    auto container = to.node.find_container(request.params["namespace"], request.params["name"], wanted->container, false);
    if (container && !container->running)
        container = error{.code = code::unavailable, .message = pod + ": the container is not running; see `gantry explain " + pod + "`"};
    if (!container) {
        co_await answer.fail(container.error());
        co_return;
    }
    auto pipes = exec_pipes::make(*wanted);
    if (!pipes) {
        co_await answer.fail(pipes.error());
        co_return;
    }
    auto client = co_await answer.upgrade(std::string(stream_protocol_name));
    if (!client) co_return;

    op_request call;
    call.bytes = cri_request(*wanted, container->id).SerializeAsString();
    for (const auto& fd : pipes->theirs) call.fds.push_back(fd.get());
    exec_session session(to.loop, *client, *pipes);
    // The op completes when the command has ended and its output is drained into the pipes: what is in them is sent on.
    auto outcome = co_await ((run_exec(*container->runtime, std::move(call), *pipes, pod) && session.send_output()) ||
                             session.take_input());
    if (outcome.index() != 0) co_return; // the client left: the cancelled op kills the command
    auto& reply = std::get<0>(outcome);
    std::string status = reply ? reply->bytes : std::string{};
    if (!reply) {
        const base::json::object fault{{"error", {{"code", to_string(reply.error().code)}, {"message", reply.error().message}}}};
        status = base::to_text(fault);
    }
    co_await session.send_frame(channel::status, status);
}

} // namespace

void add_exec_routes(router& routes, api& to) { routes.add("POST", "/v1/exec/{namespace}/{name}", bound(serve_exec, to)); }

} // namespace gantry::core::admin
