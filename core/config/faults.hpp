// Collects every fault of a configuration file, each with the line and the key it is about.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::core {

class fault_list {
public:
    /// lines: path -> line, as base::yaml_document has it. A path that is not in it takes the line of its nearest parent.
    fault_list(std::string file, std::map<std::string, int> lines) : file_(std::move(file)), lines_(std::move(lines)) {}

    /// "FILE:LINE: path: what"; with an empty path "FILE:LINE: what".
    void add(std::string_view path, std::string_view what);

    /// A fault whose text names file and line itself.
    void add_whole(std::string text) { faults_.push_back({0, std::move(text)}); }

    bool empty() const noexcept { return faults_.empty(); }
    int line_of(std::string_view path) const;
    /// In the order of the file.
    std::vector<std::string> texts() const;
    /// code::invalid with one fault a line; success when there is none.
    result<void> verdict() const;

private:
    struct fault {
        int line;
        std::string text;
    };
    std::string file_;
    std::map<std::string, int> lines_;
    std::vector<fault> faults_;
};

} // namespace gantry::core
