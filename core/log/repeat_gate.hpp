// Says which of many equal faults deserve a line: the first, then one each back-off step, and every change.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gantry::core::log {

/// Keys are the objects that fail ("pod uid/volume"). Not thread-safe.
class repeat_gate {
public:
    using time_point = std::chrono::steady_clock::time_point;

    explicit repeat_gate(std::chrono::milliseconds first = std::chrono::seconds(10),
                         std::chrono::milliseconds most = std::chrono::minutes(5))
        : first_(first), most_(most) {}

    /// How many equal faults were kept back since the last line, if this one is to be written; else nothing.
    std::optional<std::uint64_t> pass(const std::string& key, const std::string& message, time_point now);

    /// The fault is over; its next occurrence is written at once.
    void clear(const std::string& key) { entries_.erase(key); }

private:
    static constexpr std::size_t most_keys = 4096;

    struct entry {
        std::string message;
        time_point next{};
        std::chrono::milliseconds step{};
        std::uint64_t kept_back = 0;
    };
    void make_room();

    std::chrono::milliseconds first_, most_;
    std::map<std::string, entry> entries_;
};

} // namespace gantry::core::log
