#include "core/images/image_manager.hpp"

#include <list>
#include <optional>

#include <boost/asio/cancellation_signal.hpp>

#include "core/images/reference.hpp"
#include "core/kernel/cri_client.hpp"
#include "core/kernel/signal.hpp"
#include "core/pod/go_duration.hpp"

namespace gantry::core {

namespace asio = boost::asio;

struct image_manager::pull {
    std::optional<result<void>> outcome;
    std::list<signal*> waiters;
    std::shared_ptr<asio::cancellation_signal> stop;
};

image_manager::image_manager(asio::any_io_executor executor, event_recorder& events)
    : executor_(executor), events_(events), running_(std::move(executor)) {}
image_manager::~image_manager() = default;

asio::awaitable<void> image_manager::stop() {
    running_.cancel();
    co_await running_.join();
}

asio::awaitable<void> image_manager::run_pull(std::shared_ptr<pull> p, plugin_client& client, std::string name,
                                              std::string pod_key, std::string uid) {
    const pod_ref ref{std::move(uid), std::move(pod_key)};
    auto outcome = co_await pull_image(client, ref, name);
    p->outcome.emplace(std::move(outcome));
    pulls_.erase({&client, name});
    for (auto* waiter : p->waiters) waiter->notify();
}

asio::awaitable<result<void>> image_manager::join_pull(const image_request& request, const std::string& name) {
    const std::pair key(request.client, name);
    auto known = pulls_.find(key);
    std::shared_ptr<pull> p;
    if (known != pulls_.end()) {
        p = known->second;
    } else {
        p = std::make_shared<pull>();
        pulls_.emplace(key, p);
        p->stop = running_.add(run_pull(p, *request.client, name, request.pod_key, request.origin.uid));
    }
    signal done(executor_);
    const auto self = p->waiters.insert(p->waiters.end(), &done);
    bool woken = true;
    while (woken && !p->outcome) woken = co_await done.wait();
    p->waiters.erase(self);
    if (p->outcome) co_return *p->outcome;
    if (p->waiters.empty()) p->stop->emit(asio::cancellation_type::terminal);
    co_return error{.code = code::cancelled, .message = "pull of " + name + ": cancelled"};
}

asio::awaitable<std::variant<image_facts, image_failure>> image_manager::ensure(const image_request& request,
                                                                                pull_history& history) {
    const auto say = [&](bool warning, const char* reason, std::string message) {
        kube_event event = request.origin;
        event.warning = warning;
        event.reason = reason;
        event.message = std::move(message);
        events_.record(std::move(event), std::chrono::system_clock::now());
    };
    const auto fail = [&](const char* reason, std::string message, base::wall_time retry_at = {}) {
        say(true, "Failed", std::string("Error: ") + reason);
        return image_failure{reason, std::move(message), retry_at};
    };

    auto name = with_default_tag(request.image);
    if (!name) {
        say(true, "InspectFailed", name.error().message);
        co_return fail("InvalidImageName", name.error().message);
    }
    const pod_ref ref{request.origin.uid, request.pod_key};
    const std::string shown = "\"" + request.image + "\"";

    if (request.policy != "Always") {
        auto present = co_await image_status(*request.client, ref, *name);
        if (!present && present.error().code == code::cancelled) co_return image_failure{};
        if (!present) {
            auto message = "Failed to inspect image " + shown + ": " + present.error().message;
            say(true, "InspectFailed", message);
            co_return fail("ImageInspectError", std::move(message));
        }
        if (*present) {
            say(false, "Pulled", "Container image " + shown + " already present on machine and can be accessed by the pod");
            history = {};
            co_return **present;
        }
        if (request.policy == "Never") {
            auto message = "Container image " + shown + " is not present with pull policy of Never";
            say(true, "ErrImageNeverPull", message);
            co_return fail("ErrImageNeverPull", std::move(message));
        }
    }

    const auto started = std::chrono::system_clock::now();
    const auto next = history.delay.next_try(0, history.failed_at, request.pacing);
    if (history.delay.delay.count() != 0 && started < next) {
        auto message = "Back-off pulling image " + shown;
        say(false, "BackOff", message);
        if (!history.last_error.empty()) message += ": ErrImagePull: " + history.last_error;
        co_return fail("ImagePullBackOff", std::move(message), next);
    }
    say(false, "Pulling", "Pulling image " + shown);
    auto pulled = co_await join_pull(request, *name);
    if (!pulled && pulled.error().code == code::cancelled) co_return image_failure{};
    if (!pulled) {
        const auto now = std::chrono::system_clock::now();
        history.delay.step(0, now, now, request.pacing);
        history.failed_at = now;
        history.last_error = pulled.error().message;
        say(true, "Failed", "Failed to pull image " + shown + ": " + history.last_error);
        co_return fail("ErrImagePull", history.last_error);
    }
    history = {};
    auto present = co_await image_status(*request.client, ref, *name);
    if (!present || !*present) {
        auto message = "Failed to inspect image " + shown + " after its pull: " +
                       (present ? "it is not there" : present.error().message);
        say(true, "InspectFailed", message);
        co_return fail("ImageInspectError", std::move(message));
    }
    const auto took = go_duration(std::chrono::system_clock::now() - started);
    say(false, "Pulled",
        "Successfully pulled image " + shown + " in " + took + " (" + took + " including waiting). Image size: " +
            std::to_string((*present)->size) + " bytes.");
    co_return **present;
}

} // namespace gantry::core
