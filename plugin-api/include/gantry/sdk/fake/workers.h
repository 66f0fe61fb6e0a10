// The executor of the fake host: a few threads that run functions which may block.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace gantry::fake {

class workers {
public:
    static constexpr std::size_t most_queued = 4096; // as the ABI says

    explicit workers(std::size_t threads) {
        for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    }
    ~workers() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            ending_ = true;
        }
        changed_.notify_all();
        for (auto& one : threads_) one.join();
    }
    workers(const workers&) = delete;
    workers& operator=(const workers&) = delete;

    /// False when the queue is full.
    bool submit(std::function<void()> f) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (refusing_ || queue_.size() >= most_queued) return false;
            queue_.push_back(std::move(f));
        }
        changed_.notify_one();
        return true;
    }
    /// Lets a test see what a plugin does when the executor takes no more.
    void refuse(bool on) {
        const std::lock_guard<std::mutex> lock(mutex_);
        refusing_ = on;
    }

private:
    void run() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
            if (queue_.empty()) return;
            auto f = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            f();
            f = nullptr;
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> queue_;
    bool ending_ = false;
    bool refusing_ = false;
    std::vector<std::thread> threads_;
};

} // namespace gantry::fake
