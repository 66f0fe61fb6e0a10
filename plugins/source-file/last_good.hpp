// The last good text of each manifest, so that a restart beside a broken file does not cost its pods.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::source_file {

class last_good {
public:
    /// directory: private to this instance, made when it is first needed; empty keeps nothing.
    explicit last_good(std::string directory) : directory_(std::move(directory)) {}

    /// Writes only what differs from what is kept. [worker]
    result<void> save(const std::string& path, std::string_view text) const;
    /// NOT_FOUND when nothing is kept. [worker]
    result<std::string> load(const std::string& path) const;
    void drop(const std::string& path) const;
    /// Forgets all but these paths. [worker]
    result<void> keep_only(const std::set<std::string>& paths) const;

private:
    std::string file_of(const std::string& path) const;

    std::string directory_;
};

} // namespace gantry::source_file
