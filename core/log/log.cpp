#include "core/log/log.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/base_sink.h>

#include "core/log/format.hpp"

namespace gantry::core::log {

namespace {

/// Writes finished lines to file descriptor 2 and counts them, so that flush() knows when all are out.
class stderr_sink final : public spdlog::sinks::base_sink<std::mutex> {
public:
    std::atomic<std::uint64_t> written{0};

protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        std::string_view rest(message.payload.data(), message.payload.size());
        while (!rest.empty()) {
            const auto n = ::write(STDERR_FILENO, rest.data(), rest.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) break; // nobody reads stderr: the line is lost, the node goes on
            rest.remove_prefix(static_cast<std::size_t>(n));
        }
        written.fetch_add(1, std::memory_order_release);
    }
    void flush_() override {}
};

/// The queue and the thread behind it. Lives until the process ends: plugins may log during its last moments.
class writer {
public:
    static writer& get() {
        static auto* instance = new writer;
        return *instance;
    }

    void submit(std::string line) {
        submitted_.fetch_add(1, std::memory_order_relaxed);
        logger_->log(spdlog::level::critical, spdlog::string_view_t(line.data(), line.size()));
    }

    void flush() {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
        while (sink_->written.load(std::memory_order_acquire) + pool_->overrun_counter() < submitted_.load() &&
               std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

    std::atomic<log_format> format{log_format::text};
    std::atomic<log_level> level{log_level::info};

private:
    static constexpr std::size_t queued_lines = 1024; // past it the oldest lines give way

    writer() {
        // The writer inherits a full mask: signals are for the threads that wait for them.
        sigset_t all, before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        pool_ = std::make_shared<spdlog::details::thread_pool>(queued_lines, 1, [] { ::pthread_setname_np(::pthread_self(), "log"); });
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        sink_ = std::make_shared<stderr_sink>();
        logger_ = std::make_shared<spdlog::async_logger>("gantry", sink_, pool_, spdlog::async_overflow_policy::overrun_oldest);
        logger_->set_level(spdlog::level::trace);
    }

    std::atomic<std::uint64_t> submitted_{0};
    std::shared_ptr<stderr_sink> sink_;
    std::shared_ptr<spdlog::details::thread_pool> pool_;
    std::shared_ptr<spdlog::async_logger> logger_;
};

void submit(log_level level, std::string_view message, std::span<const field> fields) {
    auto& out = writer::get();
    const auto now = std::chrono::system_clock::now();
    out.submit(out.format.load(std::memory_order_relaxed) == log_format::json ? json_line(now, level, message, fields)
                                                                              : text_line(now, level, message, fields));
}

} // namespace

void configure(log_format format, log_level level) {
    writer::get().format = format;
    writer::get().level = level;
}

void flush() { writer::get().flush(); }

bool enabled(log_level level) { return level >= writer::get().level.load(std::memory_order_relaxed); }

void write(log_level level, std::string_view message, std::span<const field> fields) {
    if (enabled(level)) submit(level, message, fields);
}

void channel::write(log_level level, std::string_view message, std::span<const field> fields) const {
    if (!enabled(level)) return;
    std::vector<field> all;
    all.reserve(fields.size() + 1);
    all.push_back({"plugin", name_});
    all.insert(all.end(), fields.begin(), fields.end());
    submit(level, message, all);
}

} // namespace gantry::core::log
