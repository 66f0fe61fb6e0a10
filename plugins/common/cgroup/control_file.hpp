// Reading and writing the kernel's control files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::cgroup {

/// Non-empty pieces of text between separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// A file's text without the last newline.
result<std::string> read_control(const std::string& path);

/// One write(2); the error names value and file.
result<void> write_control(const std::string& path, std::string_view value);

/// Whole numbers; "max" is UINT64_MAX. 0 for anything else.
std::uint64_t to_number(std::string_view text);

/// The number behind `key` in lines of "key value"; 0 when absent.
std::uint64_t number_of(std::string_view text, std::string_view key);

/// A one-number file; 0 when it cannot be read.
std::uint64_t read_number(const std::string& path);

} // namespace gantry::cgroup
