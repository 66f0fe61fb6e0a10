// Commands in running containers, and joining a container's own streams.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <csignal>

#include "plugins/cri-native/runtime/control.hpp"
#include "plugins/cri-native/runtime/engine.hpp"
#include "plugins/cri-native/runtime/spec/process.hpp"

namespace gantry::cri_native {

namespace {

std::vector<std::string> words(const google::protobuf::RepeatedPtrField<std::string>& list) {
    return {list.begin(), list.end()};
}

/// Names the descriptors of exec_stream and attach_stream: stdin, stdout, stderr as asked for, then control.
struct stream_set {
    launch::stdio stdio;
    int control = -1;
};

result<stream_set> assign(const std::vector<sdk::fd>& fds, bool in, bool out, bool err) {
    const std::size_t expected =
        static_cast<std::size_t>(in) + static_cast<std::size_t>(out) + static_cast<std::size_t>(err) + 1;
    if (fds.size() != expected)
        return error{.code = code::invalid,
                     .message = "the request names " + std::to_string(expected - 1) +
                                " streams and a control socket, but comes with " + std::to_string(fds.size()) +
                                " descriptors"};
    stream_set set;
    std::size_t next = 0;
    if (in) set.stdio.in = fds[next++].get();
    if (out) set.stdio.out = fds[next++].get();
    if (err) set.stdio.err = fds[next++].get();
    set.control = fds[next].get();
    return set;
}

} // namespace

result<launch::exec_plan> engine::exec_plan_of(const container& one, std::vector<std::string> command, bool tty) {
    const auto pod = one.pod.lock();
    if (!pod || command.empty())
        return error{.code = code::invalid,
                     .message = command.empty() ? "cmd is empty" : "the container's sandbox is gone"};
    GANTRY_TRY(const auto image, images_->resolve(one.record.image_id()));
    cri::ContainerConfig config = one.record.config();
    *config.mutable_command() = {command.begin(), command.end()};
    config.clear_args();
    config.set_tty(tty);
    launch::exec_plan plan;
    GANTRY_TRY(plan.process, process_of(config, image, facts_of(one, *pod)));
    GANTRY_TRY(const auto choice, seccomp_of(config));
    GANTRY_TRY(plan.process.seccomp, seccomp_->load(choice, plan.process.capabilities));
    GANTRY_CHECK(check_exec_size(plan.process.argv, plan.process.env, stack_limit_));
    return plan;
}

op_task<cri::ExecSyncResponse> engine::exec_sync(cri::ExecSyncRequest request, sdk::op op) {
    GANTRY_CO_TRY(const auto one, running_container(request.container_id()));
    if (request.timeout() < 0) co_return error{.code = code::invalid, .message = "timeout is negative"};
    auto plan = co_await host_.work([&] { return exec_plan_of(*one, words(request.cmd()), false); });
    if (!plan) co_return plan.error();
    const auto pod = one->pod.lock();
    if (!pod || !pod->supervisor)
        co_return error{.code = code::unavailable,
                        .message = "the supervisor of container " + request.container_id() + " is gone"};
    plan->timeout_ns = static_cast<std::uint64_t>(request.timeout()) * 1'000'000'000u;
    const auto ended = co_await outcome_of<launch::exec_result>(host_, [&](launch::callback<launch::exec_result> done) {
        const auto handle = pod->supervisor->exec_captured(one->record.id(), *plan, std::move(done));
        const std::weak_ptr<sandbox> weak = pod;
        op.on_cancel([weak, handle] {
            if (const auto pod = weak.lock(); pod && pod->supervisor) pod->supervisor->exec_signal(handle, SIGKILL);
        });
    });
    if (!ended) co_return ended.error();
    if (op.cancelled()) co_return op.cancelled_error();
    if (ended->timed_out)
        co_return error{.code = code::timeout,
                        .message = "command \"" + request.cmd(0) + "\" timed out after " +
                                   std::to_string(request.timeout()) + " s and was killed with all it had started"};
    cri::ExecSyncResponse response;
    response.set_stdout(ended->stdout_data);
    response.set_stderr(ended->stderr_data);
    response.set_exit_code(ended->exit_code);
    co_return response;
}

op_task<int> engine::exec_stream(cri::ExecRequest request, std::vector<sdk::fd> fds, sdk::op op) {
    GANTRY_CO_TRY(const auto one, running_container(request.container_id()));
    GANTRY_CO_TRY(const auto streams,
                  assign(fds, request.stdin(), request.stdout(), request.stderr() && !request.tty()));
    auto plan = co_await host_.work([&] { return exec_plan_of(*one, words(request.cmd()), request.tty()); });
    if (!plan) co_return plan.error();
    const auto pod = one->pod.lock();
    if (!pod || !pod->supervisor)
        co_return error{.code = code::unavailable,
                        .message = "the supervisor of container " + request.container_id() + " is gone"};
    const std::weak_ptr<sandbox> weak = pod;
    std::unique_ptr<control_channel> control;
    const auto ended = co_await outcome_of<launch::exec_result>(host_, [&](launch::callback<launch::exec_result> done) {
        const auto handle = pod->supervisor->exec_streams(one->record.id(), *plan, streams.stdio, std::move(done));
        op.on_cancel([weak, handle] {
            if (const auto pod = weak.lock(); pod && pod->supervisor) pod->supervisor->exec_signal(handle, SIGKILL);
        });
        auto watched = control_channel::open(host_, streams.control, [weak, handle](const control_message& message) {
            const auto pod = weak.lock();
            if (!pod || !pod->supervisor) return;
            if (message.signal != 0) pod->supervisor->exec_signal(handle, message.signal);
            if (message.columns != 0) pod->supervisor->exec_resize(handle, {message.columns, message.rows});
        });
        if (watched) control = *std::move(watched);
    });
    control.reset();
    if (!ended) co_return ended.error();
    if (op.cancelled()) co_return op.cancelled_error();
    co_return ended->exit_code;
}

op_task<void> engine::attach_stream(cri::AttachRequest request, std::vector<sdk::fd> fds, sdk::op op) {
    GANTRY_CO_TRY(const auto one, running_container(request.container_id()));
    const bool tty = one->record.config().tty();
    GANTRY_CO_TRY(const auto streams, assign(fds, request.stdin(), request.stdout(), request.stderr() && !tty));
    const auto pod = one->pod.lock();
    const std::weak_ptr<sandbox> weak = pod;
    const std::string id = one->record.id();
    std::unique_ptr<control_channel> control;
    const auto ended = co_await outcome_of<void>(host_, [&](launch::callback<void> done) {
        pod->supervisor->attach(id, streams.stdio, done);
        op.on_cancel([done, op] { done(op.cancelled_error()); });
        auto watched = control_channel::open(host_, streams.control, [weak, id, tty](const control_message& message) {
            const auto pod = weak.lock();
            if (!pod || !pod->supervisor) return;
            if (message.signal != 0) pod->supervisor->signal(id, message.signal, [](const result<void>&) {});
            if (message.columns != 0 && tty)
                pod->supervisor->resize(id, {message.columns, message.rows}, [](const result<void>&) {});
        });
        if (watched) control = *std::move(watched);
    });
    control.reset();
    if (!ended) co_return ended.error();
    if (op.cancelled()) co_return op.cancelled_error();
    co_return result<void>{};
}

} // namespace gantry::cri_native
