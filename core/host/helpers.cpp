#include "core/host/helpers.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <algorithm>
#include <vector>

namespace gantry::core {

namespace {

int wait_status_of(const siginfo_t& info) {
    if (info.si_code == CLD_EXITED) return (info.si_status & 0xff) << 8;
    return (info.si_status & 0x7f) | (info.si_code == CLD_DUMPED ? 0x80 : 0);
}

} // namespace

helpers::~helpers() {
    for (auto& [pid, helper] : running_) {
        alarms_.cancel(helper.alarm);
        kill_tree(helper);
    }
}

result<pid_t> helpers::spawn(helper_program program, std::chrono::steady_clock::time_point deadline, exit_fn on_exit) {
    const std::lock_guard lock(mutex_); // held until it is in the map: its exit may come at once
    running helper{.pid = 0, .pidfd = {}, .group = {}, .on_exit = std::move(on_exit)};
    if (groups_) {
        GANTRY_TRY(helper.group, groups_->create(instance_ + "-" + std::to_string(++started_)));
        program.join_fd = helper.group->procs_fd();
    }
    auto started = spawn_helper(program);
    if (!started) {
        if (helper.group) helper.group->remove();
        return std::move(started).error();
    }
    const pid_t pid = started->pid;
    helper.pid = pid;
    helper.pidfd = std::move(started->pidfd);
    helper.watch = lane_.watch(helper.pidfd.get(), EPOLLIN, [this, pid](std::uint32_t) { reap(pid); });
    if (helper.watch == 0) {
        const auto failure = sys_error("watch helper " + program.argv[0], errno);
        kill_tree(helper);
        siginfo_t info{};
        ::waitid(P_PIDFD, static_cast<id_t>(helper.pidfd.get()), &info, WEXITED);
        if (helper.group) remove_later(std::move(helper.group), 100);
        return failure;
    }
    if (deadline != std::chrono::steady_clock::time_point::max()) helper.alarm = alarms_.set(deadline, [this, pid] { expire(pid); });
    running_.emplace(pid, std::move(helper));
    return pid;
}

void helpers::kill_tree(const running& helper) const {
    ::kill(-helper.pid, SIGKILL); // it leads its process group; a zombie at worst, since it has not been reaped
    if (helper.group) helper.group->kill();
}

void helpers::kill(pid_t pid) {
    const std::lock_guard lock(mutex_);
    if (const auto found = running_.find(pid); found != running_.end()) kill_tree(found->second);
}

void helpers::expire(pid_t pid) {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(pid);
    if (found == running_.end()) return;
    found->second.timed_out = true;
    kill_tree(found->second);
}

void helpers::reap(pid_t pid) {
    std::unique_lock lock(mutex_);
    const auto found = running_.find(pid);
    if (found == running_.end()) return;
    kill_tree(found->second); // children that it left behind; its own zombie still holds the pid
    siginfo_t info{};
    if (::waitid(P_PIDFD, static_cast<id_t>(found->second.pidfd.get()), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return;
    auto helper = std::move(found->second);
    running_.erase(found);
    lock.unlock();
    lane_.unwatch(helper.watch);
    alarms_.cancel(helper.alarm);
    if (helper.group) remove_later(std::move(helper.group), 200);
    helper.on_exit(wait_status_of(info), helper.timed_out);
}

void helpers::remove_later(std::shared_ptr<helper_group> group, int tries_left) {
    if (group->remove() || tries_left == 0) return; // the next start sweeps what stays
    lane_.after(std::chrono::milliseconds(5), [this, group = std::move(group), tries_left]() mutable {
        group->kill();
        remove_later(std::move(group), tries_left - 1);
    });
}

void helpers::stop(std::chrono::steady_clock::time_point deadline) {
    std::map<pid_t, running> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(running_);
    }
    for (auto& [pid, helper] : all) {
        alarms_.cancel(helper.alarm);
        lane_.unwatch(helper.watch);
        kill_tree(helper);
        pollfd ended{.fd = helper.pidfd.get(), .events = POLLIN, .revents = 0};
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
        if (::poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(left, 1))) != 1) continue; // stuck in the kernel
        siginfo_t info{};
        ::waitid(P_PIDFD, static_cast<id_t>(helper.pidfd.get()), &info, WEXITED | WNOHANG);
        for (int tries = 0; helper.group && tries < 20 && !helper.group->remove(); ++tries) ::poll(nullptr, 0, 5);
    }
}

} // namespace gantry::core
