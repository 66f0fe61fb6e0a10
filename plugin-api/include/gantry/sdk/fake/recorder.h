// What a plugin told the fake host: log lines, metrics, events.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../../abi/host.h"
#include "message.h"

namespace gantry::fake {

struct log_line {
    std::int32_t level = GANTRY_LOG_INFO;
    std::string message;
    std::map<std::string, std::string> fields;
};

struct event {
    std::string topic;
    std::string key;
    std::string bytes;
};

class recorder {
public:
    void log(std::int32_t level, gantry_str message, const gantry_field* fields, std::uint32_t count) {
        log_line line{level, to_string(message), {}};
        for (std::uint32_t i = 0; i < count; ++i) line.fields[to_string(fields[i].key)] = to_string(fields[i].value);
        const std::lock_guard<std::mutex> lock(mutex_);
        logs_.push_back(std::move(line));
    }
    std::vector<log_line> logs() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return logs_;
    }
    bool logged(const std::string& part) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& line : logs_) {
            if (line.message.find(part) != std::string::npos) return true;
        }
        return false;
    }

    void allow_define(bool on) {
        const std::lock_guard<std::mutex> lock(mutex_);
        may_define_ = on;
    }
    std::uint32_t define(std::int32_t kind, const std::string& name) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!may_define_ || !is_name(name) || kind < GANTRY_METRIC_COUNTER || kind > GANTRY_METRIC_HISTOGRAM) return 0;
        for (const auto& one : metrics_) {
            if (one.name == name) return 0;
        }
        metrics_.push_back({kind, name, {}});
        return static_cast<std::uint32_t>(metrics_.size());
    }
    /// False for a metric that was never defined.
    bool record(std::uint32_t id, const std::string& label, double value) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (id == 0 || id > metrics_.size()) return false;
        auto& one = metrics_[id - 1];
        auto& now = one.values[label];
        now = one.kind == GANTRY_METRIC_GAUGE ? value : now + value;
        return true;
    }
    /// A counter's or gauge's value; of a histogram the sum. 0 when nothing was recorded.
    double metric(const std::string& name, const std::string& label) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& one : metrics_) {
            const auto found = one.values.find(label);
            if (one.name == name && found != one.values.end()) return found->second;
        }
        return 0;
    }

    void publish(event e) {
        const std::lock_guard<std::mutex> lock(mutex_);
        published_.push_back(std::move(e));
    }
    void emit(std::string json) {
        const std::lock_guard<std::mutex> lock(mutex_);
        emitted_.push_back(std::move(json));
    }
    std::vector<event> published() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return published_;
    }
    std::vector<std::string> emitted() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return emitted_;
    }

private:
    struct family {
        std::int32_t kind;
        std::string name;
        std::map<std::string, double> values;
    };
    static bool is_name(const std::string& name) {
        return !name.empty() && (name.front() < '0' || name.front() > '9') &&
               name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    }

    mutable std::mutex mutex_;
    std::vector<log_line> logs_;
    bool may_define_ = false;
    std::vector<family> metrics_;
    std::vector<event> published_;
    std::vector<std::string> emitted_;
};

} // namespace gantry::fake
