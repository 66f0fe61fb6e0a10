#include "core/host/executor.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>

#include "core/host/threads.hpp"

namespace gantry::core {

class executor::state : public std::enable_shared_from_this<executor::state> {
public:
    state(std::string name, std::size_t most_threads) : name_(std::move(name)), most_threads_(most_threads) {}

    code submit(task task) {
        std::unique_lock lock(mutex_);
        if (finished_) return code::unavailable;
        if (tasks_.size() >= most_queued) return code::busy;
        tasks_.push_back(std::move(task));
        if (tasks_.size() <= idle_ || threads_ == most_threads_) {
            lock.unlock();
            changed_.notify_one();
            return code::ok;
        }
        try {
            start_thread(name_, [self = shared_from_this()] { self->work(); }).detach();
            ++threads_;
        } catch (const std::system_error&) {
            if (threads_ != 0) return code::ok; // a thread that exists will come to it
            tasks_.pop_back();
            return code::resource;
        }
        return code::ok;
    }

    bool finish(std::chrono::steady_clock::time_point deadline) {
        std::deque<task> dropped;
        std::unique_lock lock(mutex_);
        finished_ = true;
        dropped.swap(tasks_);
        changed_.notify_all();
        return ended_.wait_until(lock, deadline, [this] { return threads_ == 0; });
    }

    void reopen() {
        const std::lock_guard lock(mutex_);
        finished_ = false;
    }

private:
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            if (tasks_.empty()) {
                ++idle_;
                const bool more = changed_.wait_for(lock, std::chrono::seconds(10), [this] { return !tasks_.empty() || finished_; });
                --idle_;
                if (!more || tasks_.empty()) break;
            }
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
            task = nullptr;
            lock.lock();
        }
        --threads_;
        if (threads_ == 0) ended_.notify_all();
    }

    const std::string name_;
    const std::size_t most_threads_;
    std::mutex mutex_;
    std::condition_variable changed_, ended_;
    std::deque<task> tasks_;
    std::size_t threads_ = 0;
    std::size_t idle_ = 0;
    bool finished_ = false;
};

executor::executor(std::string thread_name, std::size_t most_threads)
    : state_(std::make_shared<state>(std::move(thread_name), most_threads)) {}
executor::~executor() { state_->finish(std::chrono::steady_clock::now()); }
code executor::submit(task task) { return state_->submit(std::move(task)); }
bool executor::finish(std::chrono::steady_clock::time_point deadline) { return state_->finish(deadline); }
void executor::reopen() { state_->reopen(); }

} // namespace gantry::core
