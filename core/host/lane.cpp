#include "core/host/lane.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "base/unique_fd.hpp"
#include "core/host/threads.hpp"

namespace gantry::core {

namespace {

constexpr std::uint64_t wake_token = 1;
constexpr std::uint64_t timer_token = 2;
constexpr std::uint64_t first_handle = 3;

std::int64_t ns_of(lane::clock::time_point time) { return time.time_since_epoch().count(); }

} // namespace

class lane::state : public std::enable_shared_from_this<lane::state> {
public:
    result<void> open() {
        epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
        wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
        if (!epoll_ || !wake_ || !timer_) return sys_error("open the file descriptors of a lane", errno);
        if (!add(wake_.get(), EPOLLIN, wake_token) || !add(timer_.get(), EPOLLIN, timer_token))
            return sys_error("epoll_ctl of a lane", errno);
        return {};
    }

    void start(const std::string& name) {
        thread_ = start_thread(name, [self = shared_from_this()] { self->run(); });
    }

    void post(task task) {
        bool asleep = false;
        {
            const std::lock_guard lock(mutex_);
            if (finishing_) return;
            tasks_.push_back(std::move(task));
            asleep = std::exchange(asleep_, false);
        }
        if (asleep) wake();
    }

    std::uint64_t after(std::chrono::nanoseconds delay, task task) {
        const auto now = clock::now();
        const auto most = clock::time_point::max() - now;
        const std::lock_guard lock(mutex_);
        const auto handle = next_handle_++;
        const auto due = now + std::min<std::chrono::nanoseconds>(delay, most);
        const auto at = timers_.emplace(std::pair{due, handle}, std::move(task)).first;
        due_.emplace(handle, due);
        if (at == timers_.begin()) arm();
        return handle;
    }

    bool cancel(std::uint64_t timer) {
        const std::lock_guard lock(mutex_);
        const auto found = due_.find(timer);
        if (found == due_.end()) return false;
        timers_.erase({found->second, timer});
        due_.erase(found);
        return true;
    }

    std::uint64_t watch(int fd, std::uint32_t events, std::function<void(std::uint32_t)> fn) {
        // A copy: it stays valid, and can be removed, even if the plugin closes its own too early.
        base::unique_fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
        if (!copy) return 0;
        const std::lock_guard lock(mutex_);
        const auto handle = next_handle_++;
        if (!add(copy.get(), events, handle)) return 0;
        watches_.emplace(handle, watched{std::move(copy), std::make_shared<const std::function<void(std::uint32_t)>>(std::move(fn))});
        return handle;
    }

    void unwatch(std::uint64_t handle) {
        const std::lock_guard lock(mutex_);
        const auto found = watches_.find(handle);
        if (found == watches_.end()) return;
        remove(found->second);
        watches_.erase(found);
    }

    void revoke() {
        const std::lock_guard lock(mutex_);
        timers_.clear();
        due_.clear();
        for (const auto& [handle, watch] : watches_) remove(watch);
        watches_.clear();
    }

    bool on_lane() const noexcept { return thread_.get_id() == std::this_thread::get_id(); }

    clock::duration busy_for(clock::time_point now) const noexcept {
        const auto since = busy_since_.load(std::memory_order_relaxed);
        return since == 0 ? clock::duration::zero() : clock::duration(ns_of(now) - since);
    }

    bool finish(clock::time_point deadline) {
        {
            std::unique_lock lock(mutex_);
            finishing_ = true;
            wake();
            if (!ended_condition_.wait_until(lock, deadline, [this] { return ended_; })) return false;
        }
        thread_.join();
        return true;
    }

    void abandon() {
        if (thread_.joinable()) thread_.detach();
    }

private:
    struct watched {
        base::unique_fd fd;
        std::shared_ptr<const std::function<void(std::uint32_t)>> fn;
    };

    bool add(int fd, std::uint32_t events, std::uint64_t token) {
        epoll_event event{.events = events, .data = {.u64 = token}};
        return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
    }

    /// Closing is not enough: the plugin's own descriptor keeps the open file alive, and with it its place in the set (epoll(7)).
    void remove(const watched& watch) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watch.fd.get(), nullptr); }

    void wake() {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof one); // full means awake
    }

    /// Sets the timer descriptor to the earliest timer. [mutex held]
    void arm() {
        itimerspec when{};
        if (!timers_.empty()) {
            const auto ns = std::max<std::int64_t>(1, ns_of(timers_.begin()->first.first));
            when.it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
        }
        ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
    }

    void run() {
        while (run_tasks()) wait();
        const std::lock_guard lock(mutex_);
        ended_ = true;
        ended_condition_.notify_all();
    }

    template <class F>
    void busy(const F& piece) {
        busy_since_.store(ns_of(clock::now()), std::memory_order_relaxed);
        piece();
        busy_since_.store(0, std::memory_order_relaxed);
    }

    /// Runs what was queued at the start, so that timers and descriptors have their turn too; false once finished.
    bool run_tasks() {
        std::deque<task> batch;
        {
            const std::lock_guard lock(mutex_);
            batch.swap(tasks_);
        }
        for (auto& task : batch) {
            busy(task);
            task = nullptr; // its captures die before the next one runs
        }
        const std::lock_guard lock(mutex_);
        return !(finishing_ && tasks_.empty());
    }

    void wait() {
        int timeout = -1;
        {
            const std::lock_guard lock(mutex_);
            if (!tasks_.empty() || finishing_) timeout = 0;
            asleep_ = timeout != 0;
        }
        epoll_event events[32];
        const int n = ::epoll_wait(epoll_.get(), events, 32, timeout);
        {
            const std::lock_guard lock(mutex_);
            asleep_ = false;
        }
        for (int i = 0; i < n; ++i) {
            const auto token = events[i].data.u64;
            std::uint64_t ignored = 0;
            if (token == wake_token) [[maybe_unused]] const auto n_wake = ::read(wake_.get(), &ignored, sizeof ignored);
            else if (token == timer_token) run_timers();
            else run_watch(token, events[i].events);
        }
    }

    void run_timers() {
        std::uint64_t ignored = 0;
        [[maybe_unused]] const auto n = ::read(timer_.get(), &ignored, sizeof ignored);
        const auto now = clock::now();
        for (;;) {
            task task;
            {
                const std::lock_guard lock(mutex_);
                const auto first = timers_.begin();
                if (first == timers_.end() || first->first.first > now) {
                    arm();
                    return;
                }
                task = std::move(first->second);
                due_.erase(first->first.second);
                timers_.erase(first);
            }
            busy(task);
        }
    }

    void run_watch(std::uint64_t handle, std::uint32_t events) {
        std::shared_ptr<const std::function<void(std::uint32_t)>> fn;
        {
            const std::lock_guard lock(mutex_);
            const auto found = watches_.find(handle);
            if (found == watches_.end()) return; // unwatched by an earlier event of this round
            fn = found->second.fn;
        }
        busy([&] { (*fn)(events); });
    }

    base::unique_fd epoll_, wake_, timer_;
    mutable std::mutex mutex_;
    std::condition_variable ended_condition_;
    std::deque<task> tasks_;
    std::map<std::pair<clock::time_point, std::uint64_t>, task> timers_;
    std::unordered_map<std::uint64_t, clock::time_point> due_;
    std::unordered_map<std::uint64_t, watched> watches_;
    std::uint64_t next_handle_ = first_handle;
    bool asleep_ = false;
    bool finishing_ = false;
    bool ended_ = false;
    std::atomic<std::int64_t> busy_since_{0}; ///< ns of CLOCK_MONOTONIC, 0 while it waits
    std::thread thread_;
};

result<std::unique_ptr<lane>> lane::start(const std::string& name) {
    auto shared = std::make_shared<state>();
    GANTRY_CHECK(shared->open());
    shared->start(name);
    return std::unique_ptr<lane>(new lane(std::move(shared)));
}

lane::~lane() { state_->abandon(); }
void lane::post(task task) { state_->post(std::move(task)); }
std::uint64_t lane::after(std::chrono::nanoseconds delay, task task) { return state_->after(delay, std::move(task)); }
bool lane::cancel(std::uint64_t timer) { return state_->cancel(timer); }
std::uint64_t lane::watch(int fd, std::uint32_t events, std::function<void(std::uint32_t)> fn) {
    return state_->watch(fd, events, std::move(fn));
}
void lane::unwatch(std::uint64_t handle) { state_->unwatch(handle); }
void lane::revoke() { state_->revoke(); }
bool lane::on_lane() const noexcept { return state_->on_lane(); }
lane::clock::duration lane::busy_for(clock::time_point now) const noexcept { return state_->busy_for(now); }
bool lane::finish(clock::time_point deadline) { return state_->finish(deadline); }

} // namespace gantry::core
