// Brings the image of a container onto the node, as its pull policy says.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "core/host/call.hpp"
#include "core/kernel/kube_event.hpp"
#include "core/kernel/spawn.hpp"
#include "core/pod/backoff.hpp"
#include "core/pod/cri.hpp"

namespace gantry::core {

/// Failed pulls of one image for one pod.
struct pull_history {
    backoff delay{};
    base::wall_time failed_at{};
    std::string last_error{};
};

struct image_request {
    plugin_client* client = nullptr;
    kube_event origin{}; ///< pod and field path of the events
    std::string pod_key{};
    std::string image{};
    std::string policy{};
    backoff_policy pacing{};
};

struct image_failure {
    std::string reason; ///< ErrImagePull, ImagePullBackOff, ErrImageNeverPull, InvalidImageName, ImageInspectError
    std::string message;
    base::wall_time retry_at{}; ///< zero: with the pod's next pass
};

/// Used from the core loop only. Containers that want the same image share one pull.
class image_manager {
public:
    image_manager(boost::asio::any_io_executor executor, event_recorder& events);
    ~image_manager();
    image_manager(const image_manager&) = delete;
    image_manager& operator=(const image_manager&) = delete;

    /// history belongs to the pod and outlives the call. Cancelling leaves a pull running as long as others wait for it;
    /// the failure is then empty.
    boost::asio::awaitable<std::variant<image_facts, image_failure>> ensure(const image_request& request,
                                                                            pull_history& history);

    /// Cancels every pull and waits for its end.
    boost::asio::awaitable<void> stop();

private:
    struct pull;

    boost::asio::awaitable<result<void>> join_pull(const image_request& request, const std::string& name);
    boost::asio::awaitable<void> run_pull(std::shared_ptr<pull> p, plugin_client& client, std::string name,
                                          std::string pod_key, std::string uid);

    boost::asio::any_io_executor executor_;
    event_recorder& events_;
    std::map<std::pair<plugin_client*, std::string>, std::shared_ptr<pull>> pulls_;
    task_group running_;
};

} // namespace gantry::core
