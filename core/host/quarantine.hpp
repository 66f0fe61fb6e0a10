// Which plugins a start leaves out, judged from what earlier runs left behind. Pure functions; crash_log.hpp does the I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::core {

/// The mark that stands while a plugin is loaded and initialised: "loading INSTANCE ID SHA256 BOOT_ID UNIX_NS".
struct loading_mark {
    std::string instance{}, id{}, sha256{}, boot_id{};
    std::int64_t unix_ns = 0;
};
std::string format_mark(const loading_mark& mark);
std::optional<loading_mark> parse_mark(std::string_view text);

/// One line of the crash log: "UNIX_NS CAUSE INSTANCE WHAT". A signal handler writes it, so a line may be cut short.
struct crash_record {
    std::int64_t unix_ns = 0;
    std::string cause{}; ///< "SIGSEGV", "exit"
    std::string instance{};
    std::string what{};  ///< "init", "add"
};
std::vector<crash_record> parse_crashes(std::string_view text);
std::string format_crashes(const std::vector<crash_record>& records);

struct verdict {
    std::string instance{};
    std::string reason{}; ///< what happened, and how to clear it
};
/// An instance is quarantined when its mark still stands (unless the machine was restarted since, or the crash log blames
/// another one) or when three crashes within 60 s are attributed to it.
std::vector<verdict> judge_crashes(const std::optional<loading_mark>& mark, const std::vector<crash_record>& crashes,
                                   std::string_view boot_id);

} // namespace gantry::core
