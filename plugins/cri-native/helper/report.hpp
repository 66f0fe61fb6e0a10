// The helper's side of the protocol: one JSON object a line.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

class reporter {
public:
    /// fd: borrowed.
    explicit reporter(int fd) : fd_(fd) {}

    /// Ends the process when nobody reads any more: its work is for nobody.
    void send(const base::json::object& message) const;
    /// {"type":"error","code":"invalid","message":...,"errno":N}
    void fail(const error& e) const;
    void warn(const std::string& text) const;

private:
    int fd_;
};

/// The error of an "error" message.
error error_in(const base::json::object& message);

/// Splits what a pipe delivers into lines of at most `limit` bytes.
class line_splitter {
public:
    explicit line_splitter(std::size_t limit) : limit_(limit) {}
    /// Reads once from fd. False at the end of the stream.
    result<bool> read(int fd);
    /// The next complete line, if any.
    bool next(std::string& line);

private:
    std::size_t limit_;
    std::string pending_;
};

} // namespace gantry::cri_helper
