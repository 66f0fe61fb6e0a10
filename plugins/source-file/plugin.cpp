// source-file: static pods from a directory of manifests, as gantry.pod-source.
#include <list>
#include <thread>

#include "base/json.hpp"
#include "gantry/abi/draft/pod_source.h"
#include "gantry/sdk/plugin.hpp"
#include "plugins/source-file/stream.hpp"

namespace gantry::source_file {

namespace {

result<settings> parse_config(std::string_view text, std::string_view node_name) {
    GANTRY_TRY(const auto value, base::parse_json(text, "config"));
    settings out{.path = {}, .node_name = std::string(node_name)};
    const auto* root = value.if_object();
    const auto* path = root != nullptr ? root->if_contains("path") : nullptr;
    if (path == nullptr || !path->is_string() || !path->get_string().starts_with('/'))
        return error{.code = code::invalid, .message = "path: an absolute path of a directory or file is required"};
    out.path = path->get_string();
    while (out.path.size() > 1 && out.path.ends_with('/')) out.path.pop_back();
    if (const auto* seconds = root->if_contains("relistSeconds"); seconds != nullptr && seconds->is_int64())
        out.relist = std::chrono::seconds(seconds->get_int64());
    return out;
}

} // namespace

class source_file_plugin {
public:
    static const void* capability(std::string_view id) {
        static constexpr auto table =
            sdk::capability<gantry_pod_source>([](auto& t) { t.watch = sdk::op_fn<&source_file_plugin::watch>; });
        return id == GANTRY_POD_SOURCE ? &table : nullptr;
    }

    result<void> init(sdk::host& host) {
        GANTRY_TRY(settings_, parse_config(host.config_json(), host.node_name()));
        if (!host.state_dir().empty()) settings_.state_dir = std::string(host.state_dir()) + "/last-good";
        settings_.warn = [&host](const std::string& message) { host.warn(message); };
        return {};
    }

    /// A thread for each watch: it waits for files most of its life, and a full queue may hold it.
    void watch(sdk::request, sdk::op op) {
        std::erase_if(watches_, [](const watcher& one) { return one.ended->load(); });
        auto ended = std::make_shared<std::atomic<bool>>(false);
        std::jthread thread([settings = settings_, op, ended] {
            try {
                stream files(settings, [op](const std::string& item) { return op.item({.bytes = item}); });
                op.complete(files.run(op.stop_token()));
            } catch (const std::exception& e) {
                op.complete(
                    error{.code = code::internal, .message = "the watch of " + settings.path + " ended: " + e.what()});
            }
            *ended = true;
        });
        watches_.push_back({std::move(ended), std::move(thread)});
    }

private:
    struct watcher {
        std::shared_ptr<std::atomic<bool>> ended;
        std::jthread thread;
    };

    settings settings_;
    std::list<watcher> watches_;
};

} // namespace gantry::source_file

// clang-format off
GANTRY_PLUGIN(gantry::source_file::source_file_plugin, {
  "id": "dev.gantry.source-file",
  "name": "source-file",
  "version": "0.1.0",
  "vendor": "gantry",
  "license": "Apache-2.0",
  "description": "static pods from a directory of manifests",
  "capabilities": ["gantry.pod-source/1-draft"],
  "services": ["gantry.config/1"],
  "config": {
    "type": "object",
    "additionalProperties": false,
    "required": ["path"],
    "properties": {
      "path": {"type": "string", "pattern": "^/"},
      "relistSeconds": {"type": "integer", "minimum": 1, "maximum": 3600, "default": 20}
    }
  }
})
// clang-format on
