// The log: one line an event on stderr, as text or as JSON, written by a thread of its own so that a full pipe behind
// stderr never stops the core loop. All functions may be called from any thread and return at once.
#pragma once

#include <atomic>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "core/log/level.hpp"

namespace gantry::core::log {

/// A name beside the message. Usual keys: pod ("namespace/name"), uid, plugin, op, error.
struct field {
    std::string_view key;
    std::string_view value;
};

/// Sets format and level of the process's log; before the first call lines are text, from level info up.
void configure(log_format format, log_level level);

/// Writes what is queued, waiting at most two seconds for a reader of stderr.
void flush();

bool enabled(log_level level);
void write(log_level level, std::string_view message, std::span<const field> fields);

inline void debug(std::string_view message, std::initializer_list<field> fields = {}) {
    write(log_level::debug, message, {fields.begin(), fields.size()});
}
inline void info(std::string_view message, std::initializer_list<field> fields = {}) {
    write(log_level::info, message, {fields.begin(), fields.size()});
}
inline void warn(std::string_view message, std::initializer_list<field> fields = {}) {
    write(log_level::warn, message, {fields.begin(), fields.size()});
}
inline void error(std::string_view message, std::initializer_list<field> fields = {}) {
    write(log_level::error, message, {fields.begin(), fields.size()});
}

/// The log of one plugin instance: a level of its own that can change at run time, and its name on every line.
class channel {
public:
    channel(std::string name, log_level level) : name_(std::move(name)), level_(level) {}

    const std::string& name() const noexcept { return name_; }
    log_level level() const noexcept { return level_.load(std::memory_order_relaxed); }
    void set_level(log_level level) noexcept { level_.store(level, std::memory_order_relaxed); }
    bool enabled(log_level level) const noexcept { return level >= this->level(); }
    void write(log_level level, std::string_view message, std::span<const field> fields) const;

private:
    std::string name_;
    std::atomic<log_level> level_;
};

} // namespace gantry::core::log
