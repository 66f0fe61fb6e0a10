// Reads one container run's log across its rotated files, and follows it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::core::logs {

struct read_options {
    std::string directory;    ///< NS_NAME_UID/CONTAINER
    int attempt = 0;          ///< reads `attempt`.log and its rotated `attempt`.log.*
    bool timestamps = false;  ///< begin each line with its time
    bool follow = false;
    long tail = -1;           ///< only this many last lines; -1: all
    std::string since;        ///< RFC 3339 UTC; empty: all
};

/// Gives the payload to `sink` in file order, partial records joined, until the end of the log, or while following until
/// the log has ended: `ended()` is true and everything has been read. Stops early when sink returns false. A writer that
/// rotates loses nothing and repeats nothing here: the old file is read to its end before the new one is opened.
/// Blocks: run it on a worker thread. `wake_fd` becoming readable makes it look at ended() at once.
result<void> read_log(const read_options& options, int wake_fd, const std::function<bool()>& ended,
                      const std::function<bool(std::string_view)>& sink);

} // namespace gantry::core::logs
