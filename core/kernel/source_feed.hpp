// Follows one pod source: its watch stream, renewed when it ends.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "core/host/call.hpp"
#include "gantry/model/pod.hpp"

namespace gantry::core {

class source_feed {
public:
    struct hooks {
        std::function<void()> begin; ///< the source tells everything anew
        std::function<void(std::shared_ptr<const model::pod> pod)> set;
        std::function<void(const std::string& uid)> remove;
        std::function<void()> synced; ///< it has told everything
    };

    source_feed(boost::asio::any_io_executor executor, plugin_client& client, hooks h);

    /// Until the calling coroutine is cancelled.
    boost::asio::awaitable<void> run();

    plugin_client& client() const { return client_; }
    bool synced() const { return synced_; } ///< since the node started
    const std::string& error() const { return error_; }
    const std::map<std::string, std::string>& faults() const { return faults_; }

private:
    void take(const std::string& bytes);

    boost::asio::any_io_executor executor_;
    plugin_client& client_;
    hooks hooks_;
    bool synced_ = false;
    std::string error_;
    std::map<std::string, std::string> faults_; ///< by what the source calls the object
};

} // namespace gantry::core
