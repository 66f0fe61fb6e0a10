// Follows one runtime: its event stream, and a full listing whenever the stream is new or an audit asks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "core/kernel/cri_client.hpp"
#include "core/kernel/runtime_slot.hpp"
#include "core/kernel/signal.hpp"

namespace gantry::core {

struct found_pod {
    std::string namespace_;
    std::string name;
    runtime_view view;
};

/// By UID.
using found_pods = std::map<std::string, found_pod>;

class runtime_feed {
public:
    struct hooks {
        /// What is known of this runtime's pods: listed containers whose state is the same are not asked again.
        std::function<std::map<std::string, const runtime_view*>()> known;
        /// vanished: ids that were known when the listing began and are not in it.
        std::function<void(found_pods found, std::vector<std::string> vanished)> listed;
        std::function<void(const runtime_event& event)> event;
    };

    runtime_feed(boost::asio::any_io_executor executor, std::shared_ptr<runtime_slot> slot, hooks h);

    /// Until the calling coroutine is cancelled.
    boost::asio::awaitable<void> run();
    /// One full listing; the slot's error says why it failed.
    boost::asio::awaitable<bool> list();

    runtime_slot& slot() { return *slot_; }

private:
    boost::asio::awaitable<void> follow(std::shared_ptr<signal> ended);
    boost::asio::awaitable<result<void>> collect(found_pods& found, std::vector<std::string>& vanished);

    boost::asio::any_io_executor executor_;
    std::shared_ptr<runtime_slot> slot_;
    hooks hooks_;
    bool no_events_ = false; ///< this runtime has no event stream: listings have to do
};

} // namespace gantry::core
