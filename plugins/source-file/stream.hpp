// The life of one watch: files in, items out.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "plugins/source-file/catalogue.hpp"
#include "plugins/source-file/folder.hpp"
#include "plugins/source-file/last_good.hpp"

namespace gantry::source_file {

struct settings {
    std::string path;                         ///< directory or file, absolute
    std::chrono::milliseconds relist{20'000}; ///< full listing beside the events
    std::string node_name;
    std::string state_dir{}; ///< where the last good manifests are kept; empty: nowhere
    std::function<void(const std::string& message)> warn = [](const std::string&) {};
};

/// Runs on a thread of its own.
class stream {
public:
    /// Takes an item; an error ends the stream.
    using sink = std::function<result<void>(const std::string& item)>;

    stream(source_file::settings settings, sink out)
        : settings_(std::move(settings)), out_(std::move(out)), last_good_(settings_.state_dir) {}

    /// Until stop is requested or the sink refuses. The error says why it ended.
    error run(const std::stop_token& stop);

private:
    using clock = std::chrono::steady_clock;

    result<void> attach();
    result<void> detach(const std::string& why, bool gone);
    result<void> list(bool settled_only);
    result<void> handle(const folder_event& event);
    result<void> expire_moves();
    void load(const std::string& path);
    void refuse(const std::string& path, std::string why);
    void forget(const std::string& path);
    result<void> tell();
    result<void> tell_synced();
    clock::time_point next_wake() const;

    source_file::settings settings_;
    sink out_;
    std::optional<folder> folder_;
    catalogue catalogue_;
    last_good last_good_;
    std::map<std::string, std::string> unsaved_; ///< path -> good text that last_good_ has not seen
    std::map<std::string, signature> loaded_;
    std::map<std::string, clock::time_point> moved_away_; ///< path -> when it counts as deleted
    clock::time_point next_listing_{};
    bool synced_ = false;
};

} // namespace gantry::source_file
