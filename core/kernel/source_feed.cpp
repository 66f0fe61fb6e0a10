#include "core/kernel/source_feed.hpp"

#include <algorithm>
#include <chrono>

#include "base/json.hpp"
#include "core/kernel/signal.hpp"
#include "core/kernel/spawn.hpp"
#include "core/log/log.hpp"
#include "core/pod/names.hpp"
#include "gantry/abi/draft/pod_source.h"
#include "gantry/model/defaults.hpp"
#include "gantry/model/json.hpp"

namespace gantry::core {

namespace asio = boost::asio;
namespace json = base::json;
using namespace std::chrono_literals;

source_feed::source_feed(asio::any_io_executor executor, plugin_client& client, hooks h)
    : executor_(std::move(executor)), client_(client), hooks_(std::move(h)) {}

asio::awaitable<void> source_feed::run() {
    constexpr std::chrono::steady_clock::duration first = 100ms, longest = 5s, healthy = 30s;
    auto pause = first;
    while (!co_await is_cancelled()) {
        const auto began = std::chrono::steady_clock::now();
        hooks_.begin();
        op_request request;
        request.bytes = "{}";
        call_options options;
        options.timeout = std::chrono::nanoseconds::max();
        options.on_item = [this](op_reply item) { take(item.bytes); };
        auto ended = co_await client_.call(GANTRY_OP(GANTRY_POD_SOURCE, gantry_pod_source, watch), std::move(request),
                                           std::move(options));
        if (co_await is_cancelled()) co_return;
        error_ = ended ? "its watch ended" : ended.error().message;
        log::warn("the pod source cannot be followed", {{"plugin", client_.instance()}, {"error", error_}});
        if (std::chrono::steady_clock::now() - began > healthy) pause = first;
        signal timer(executor_);
        co_await timer.wait_until(std::chrono::steady_clock::now() + pause);
        pause = std::min(pause * 2, longest);
    }
}

void source_feed::take(const std::string& bytes) {
    const auto item = base::parse_json(bytes, "pod source");
    const auto* in = item ? item->if_object() : nullptr;
    const auto refuse = [&](const std::string& object, const std::string& why) {
        faults_[object] = why;
        log::warn("a pod source's input was refused",
                  {{"plugin", client_.instance()}, {"object", object}, {"error", why}});
    };
    if (in == nullptr) return refuse("stream", item ? "an item is not an object" : item.error().message);
    const auto type = base::string_at(*in, "type");
    if (type == "SYNCED") {
        synced_ = true;
        error_.clear();
        hooks_.synced();
        return;
    }
    if (type == "FAULT") {
        const auto object = base::string_at(*in, "object"), message = base::string_at(*in, "message");
        if (message.empty())
            faults_.erase(object);
        else
            refuse(object, message);
        return;
    }
    const auto* body = in->if_contains("pod");
    if (body == nullptr) return refuse("stream", "an item of type \"" + type + "\" has no pod");
    model::field_errors errors;
    auto pod = std::make_shared<model::pod>(model::pod_from_json(*body, errors));
    const auto& uid = pod->metadata.uid;
    if (uid.empty()) return refuse(pod_key(pod->metadata), "metadata.uid: Required value");
    if (type == "REMOVE") {
        faults_.erase(uid);
        return hooks_.remove(uid);
    }
    if (errors.empty()) {
        model::set_defaults(*pod);
        errors = model::validate(*pod);
    }
    if (!errors.empty()) return refuse(uid, model::describe(pod->metadata.name, errors));
    faults_.erase(uid);
    hooks_.set(std::move(pod));
}

} // namespace gantry::core
