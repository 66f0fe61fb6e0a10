// The plugin host: loads the plugins that NodeConfig lists, binds their capabilities, and routes every operation with
// deadline, metrics and fault attribution. The core sees plugins only through this header and call.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "core/config/node_config.hpp"
#include "core/host/call.hpp"
#include "core/host/config_check.hpp"
#include "core/host/event_port.hpp"
#include "core/host/journal.hpp"
#include "core/host/plugin_state.hpp"
#include "gantry/abi/plugin.h"
#include "gantry/sdk/result.hpp"

namespace boost::asio {
class io_context;
}

namespace gantry::core {

struct plugin_host_options {
    node_config config{};
    std::vector<std::string> plugin_dirs{};           ///< searched for `use:` names, in order; see default_plugin_dirs()
    std::vector<gantry_plugin_main_fn> builtin{};     ///< plugins linked into this program, found before the directories
    event_port events{};
};

/// One line of `gantry plugins`.
struct plugin_info {
    std::string name{};    ///< instance
    std::string use{};
    std::string id{};
    std::string version{};
    std::string file{};    ///< where it was found; empty for a built-in plugin
    std::string sha256{};
    plugin_state state = plugin_state::loaded;
    std::string reason{};  ///< why it is failed, hung or quarantined, and what to do; else empty
    std::vector<std::string> capabilities{};
    std::uint64_t ops_done = 0;
    std::uint64_t ops_failed = 0;
    std::uint64_t ops_open = 0;
    std::uint64_t ops_abandoned = 0;                     ///< given up after deadline and grace
    std::map<std::string, std::uint64_t> faults{};       ///< misbehaviour by kind ("double_complete" -> 1)
    core::log_level log_level = core::log_level::info;
};

/// All members belong to the core loop's thread unless they say otherwise.
class plugin_host {
public:
    /// Reads descriptors, verifies the files and judges the configuration; runs no plugin code yet. The error lists every
    /// fault, one a line. Blocks on file reads: call it before the loop runs.
    static result<std::unique_ptr<plugin_host>> create(boost::asio::io_context& loop, plugin_host_options options);
    /// The same with a configuration that check_config_file() accepted, whose errors name lines.
    static result<std::unique_ptr<plugin_host>> create(boost::asio::io_context& loop, checked_config checked, event_port events);
    /// Ends what stop() did not; blocks until the lanes that still answer have ended.
    virtual ~plugin_host() = default;

    /// Loads, creates, initialises and then activates every instance that is not quarantined. An instance that fails or
    /// hangs is marked so and the others go on; the error of start() is for faults of the host itself.
    virtual boost::asio::awaitable<result<void>> start() = 0;
    /// Drains every instance until `timeout`, stops and destroys it. Open ops of what does not answer are abandoned.
    virtual boost::asio::awaitable<void> stop(std::chrono::milliseconds timeout) = 0;

    /// The instance bound for a capability ("gantry.network/1-draft"), the first one where several are; null if there is
    /// none. Valid from create() on, for the host's life: calls fail with code::unavailable while the instance is not active.
    virtual plugin_client* client(std::string_view capability) = 0;
    /// Every instance bound for it, in the configured order.
    virtual std::vector<plugin_client*> clients(std::string_view capability) = 0;
    /// The runtime of a RuntimeClass handler; "" is the default runtime. Null for an unknown handler.
    virtual plugin_client* runtime(std::string_view handler) = 0;
    /// Another capability of a given instance, bound or not (a runtime's gantry.image/1-draft); null if not offered.
    virtual plugin_client* client_of(std::string_view instance, std::string_view capability) = 0;

    virtual std::vector<plugin_info> plugins() const = 0;
    virtual result<void> set_log_level(std::string_view instance, core::log_level level) = 0;
    /// Clears the quarantine or the failure of an instance and starts it.
    virtual boost::asio::awaitable<result<void>> enable(std::string instance) = 0;
    /// Prometheus text format 0.0.4: ops, faults and states of every instance, and the plugins' own metrics.
    virtual std::string metrics_text() const = 0;
    /// What was done for each pod, for `gantry explain`.
    virtual op_journal& journal() = 0;
};

} // namespace gantry::core
