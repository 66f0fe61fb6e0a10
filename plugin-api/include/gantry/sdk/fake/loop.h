// The lane of the fake host: one thread that runs posted functions, timers and descriptor callbacks, one at a time.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace gantry::fake {

class loop {
public:
    using clock = std::chrono::steady_clock;
    using fd_callback = std::function<void(int, std::uint32_t)>;

    loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        epoll_event event{};
        event.events = EPOLLIN;
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event); // data 0: no watch has that handle
        thread_ = std::thread([this] { run(); });
    }
    ~loop() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            ending_ = true;
        }
        notify();
        thread_.join();
        ::close(wake_);
        ::close(epoll_);
    }
    loop(const loop&) = delete;
    loop& operator=(const loop&) = delete;

    bool here() const { return std::this_thread::get_id() == thread_.get_id(); }

    void post(std::function<void()> f) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            tasks_.push_back(std::move(f));
        }
        notify();
    }
    /// Runs f on the lane and waits for it.
    template <class F>
    auto sync(F f) -> decltype(f()) {
        if (here()) return f();
        std::packaged_task<decltype(f())()> task(std::move(f));
        auto done = task.get_future();
        post([&task] { task(); });
        return done.get();
    }

    std::uint64_t after(std::chrono::nanoseconds delay, std::function<void()> f) {
        std::uint64_t handle = 0;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            handle = ++last_handle_;
            timers_[handle] = {clock::now() + delay, std::move(f)};
        }
        notify();
        return handle;
    }
    bool cancel(std::uint64_t handle) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return timers_.erase(handle) != 0;
    }

    /// 0 when epoll refuses the descriptor.
    std::uint64_t watch(int fd, std::uint32_t events, fd_callback f) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto handle = ++last_handle_;
        epoll_event event{};
        event.events = events;
        event.data.u64 = handle;
        if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return 0;
        watches_[handle] = {fd, std::move(f)};
        return handle;
    }
    void unwatch(std::uint64_t handle) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = watches_.find(handle);
        if (found == watches_.end()) return;
        ::epoll_ctl(epoll_, EPOLL_CTL_DEL, found->second.first, nullptr);
        watches_.erase(found);
    }

    /// Forgets everything that waits to run, as the host does when an instance has stopped.
    void revoke() {
        const std::lock_guard<std::mutex> lock(mutex_);
        tasks_.clear();
        timers_.clear();
        for (const auto& one : watches_) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, one.second.first, nullptr);
        watches_.clear();
    }

private:
    void notify() {
        const std::uint64_t one = 1;
        (void)!::write(wake_, &one, sizeof(one));
    }
    void run() {
        for (;;) {
            std::function<void()> next;
            int wait_ms = -1;
            {
                const std::lock_guard<std::mutex> lock(mutex_);
                if (ending_) return;
                next = take_due(wait_ms);
            }
            if (next) {
                next();
            } else {
                poll(wait_ms);
            }
        }
    }
    /// The next function to run, or how long there is none. With the lock held.
    std::function<void()> take_due(int& wait_ms) {
        std::function<void()> out;
        if (!tasks_.empty()) {
            out = std::move(tasks_.front());
            tasks_.pop_front();
            return out;
        }
        const auto now = clock::now();
        for (auto at = timers_.begin(); at != timers_.end(); ++at) {
            if (at->second.first <= now) {
                out = std::move(at->second.second);
                timers_.erase(at);
                return out;
            }
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(at->second.first - now).count() + 1;
            if (wait_ms < 0 || left < wait_ms) wait_ms = static_cast<int>(left < 60000 ? left : 60000);
        }
        return out;
    }
    void poll(int wait_ms) {
        epoll_event event{};
        if (::epoll_wait(epoll_, &event, 1, wait_ms) != 1) return;
        if (event.data.u64 == 0) {
            std::uint64_t count = 0;
            (void)!::read(wake_, &count, sizeof(count));
            return;
        }
        std::pair<int, fd_callback> ready{-1, nullptr};
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto found = watches_.find(event.data.u64);
            if (found != watches_.end()) ready = found->second;
        }
        if (ready.second) ready.second(ready.first, event.events);
    }

    int epoll_;
    int wake_;
    std::mutex mutex_;
    bool ending_ = false;
    std::uint64_t last_handle_ = 0;
    std::deque<std::function<void()>> tasks_;
    std::map<std::uint64_t, std::pair<clock::time_point, std::function<void()>>> timers_;
    std::map<std::uint64_t, std::pair<int, fd_callback>> watches_;
    std::thread thread_;
};

} // namespace gantry::fake
