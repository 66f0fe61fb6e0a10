// One record of a CRI log file: "TIME STREAM TAG PAYLOAD\n" (kubelet's container log format). Pure.
#pragma once

#include <optional>
#include <string_view>

namespace gantry::core::logs {

struct cri_line {
    std::string_view time;    ///< RFC 3339 with nanoseconds, UTC
    std::string_view stream;  ///< "stdout" or "stderr"
    bool partial = false;     ///< tag P: the next record of the same stream continues this line
    std::string_view payload; ///< bytes as written, without the line feed
};

/// Reads one record (without its line feed); nullopt if it is not one. The views point into `record`.
std::optional<cri_line> parse_cri_line(std::string_view record);

/// True if `time` is before `since`. Both RFC 3339 in UTC ("Z"), with any number of fraction digits.
bool is_before(std::string_view time, std::string_view since);

} // namespace gantry::core::logs
