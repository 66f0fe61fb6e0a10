#include "plugins/cni-bridge/service.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>

namespace gantry::cni_bridge {

result<std::unique_ptr<service>> service::start(settings config, network::environment env, log_fn log) {
    base::unique_fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake) return sys_error("make an eventfd", errno);
    env.log = [log](std::string_view line) { log(false, line); };
    std::unique_ptr<service> made(new service(std::move(config), std::move(env), std::move(log), std::move(wake)));
    try {
        made->thread_ = std::thread([raw = made.get()] { raw->run(); });
    } catch (const std::system_error& fault) {
        return sys_error("start the thread of cni-bridge", fault.code().value());
    }
    return made;
}

service::service(settings config, network::environment env, log_fn log, base::unique_fd wake)
    : network_(std::move(config), std::move(env)), log_(std::move(log)), wake_(std::move(wake)) {}

service::~service() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    ::eventfd_write(wake_.get(), 1);
    thread_.join();
}

void service::post(job f) {
    bool was_empty = false;
    {
        const std::lock_guard lock(mutex_);
        was_empty = jobs_.empty();
        jobs_.push_back(std::move(f));
    }
    if (was_empty) ::eventfd_write(wake_.get(), 1);
}

/// True when the thread should end.
bool service::run_jobs() {
    std::vector<job> taken;
    bool last = false;
    {
        const std::lock_guard lock(mutex_);
        taken.swap(jobs_);
        last = stopping_;
    }
    for (auto& f : taken) f(network_);
    return last;
}

void service::audit(clock::time_point now) {
    audit_at_ = now + audit_period;
    const auto outcome = network_.audit();
    const std::string failure = outcome ? std::string() : outcome.error().message;
    if (failure == last_failure_) return;
    last_failure_ = failure;
    log_(!outcome, outcome ? "bridge and nftables table are as they should be again" : failure);
}

void service::tend(clock::time_point now) {
    if (!network_.has_doomed()) {
        doom_at_ = clock::time_point::max();
    } else if (doom_at_ == clock::time_point::max()) {
        doom_at_ = now + grace;
    } else if (now >= doom_at_) {
        doom_at_ = clock::time_point::max();
        if (const auto outcome = network_.delete_doomed(); !outcome) log_(true, outcome.error().message);
    }
    if (now >= audit_at_) audit(now);
}

service::clock::time_point service::next_due() const { return std::min(audit_at_, doom_at_); }

void service::wait(clock::time_point until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
    std::array<pollfd, 2> fds{pollfd{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                              pollfd{.fd = network_.watch_fd(), .events = POLLIN, .revents = 0}};
    ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<long long>(left, 0, 3'600'000)));
    if (fds[0].revents != 0) {
        eventfd_t count = 0;
        ::eventfd_read(wake_.get(), &count);
    }
    if (fds[1].revents != 0 && network_.table_was_touched())
        audit_at_ = std::min(audit_at_, clock::now() + audit_delay);
}

void service::run() {
    if (const auto started = network_.start(); !started) {
        last_failure_ = started.error().message;
        log_(true, last_failure_);
    }
    audit_at_ = clock::now() + audit_period;
    while (!run_jobs()) {
        tend(clock::now());
        wait(next_due());
    }
}

} // namespace gantry::cni_bridge
