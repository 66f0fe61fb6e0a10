// node-linux: the cgroups, capacity and usage of a Linux node, as gantry.resources.
#include <chrono>
#include <optional>

#include "base/json.hpp"
#include "gantry/abi/draft/resources.h"
#include "gantry/sdk/plugin.hpp"
#include "plugins/node-linux/capacity.hpp"
#include "plugins/node-linux/tree.hpp"

namespace gantry::node_linux {

namespace {

namespace json = base::json;

constexpr auto removal_time = std::chrono::seconds(30); // for a remove_pod without a deadline

json::object to_json(const capacity& c) {
    return {
        {"cpuMilli", c.cpu_milli}, {"memory", c.memory}, {"pods", c.pods}, {"ephemeralStorage", c.ephemeral_storage}};
}

json::object to_json(const listed_pod& pod, const cgroup::usage& used) {
    return {{"uid", pod.uid},
            {"cpuNanos", used.cpu_ns},
            {"cpuThrottledNanos", used.throttled_ns},
            {"memoryUsage", used.memory},
            {"memoryWorkingSet", used.working_set},
            {"memoryRss", used.rss},
            {"memoryPeak", used.memory_peak},
            {"swapUsage", used.swap},
            {"pageFaults", used.page_faults},
            {"majorPageFaults", used.major_page_faults},
            {"pids", used.pids},
            {"oomKills", used.oom_kills}};
}

sdk::reply reply_of(const json::object& value) { return {.bytes = base::to_text(value)}; }

} // namespace

class node_linux_plugin {
public:
    static const void* capability(std::string_view id) {
        static constexpr auto table = sdk::capability<gantry_resources>([](auto& t) {
            t.ensure_pod = sdk::op_fn<&node_linux_plugin::ensure_pod>;
            t.remove_pod = sdk::op_fn<&node_linux_plugin::remove_pod>;
            t.list_pods = sdk::op_fn<&node_linux_plugin::list_pods>;
            t.capacity = sdk::op_fn<&node_linux_plugin::read_capacity>;
            t.stats = sdk::op_fn<&node_linux_plugin::stats>;
        });
        return id == GANTRY_RESOURCES ? &table : nullptr;
    }

    result<void> init(sdk::host& host) {
        host_ = &host;
        GANTRY_TRY(settings_, parse_config(host.config_json()));
        GANTRY_TRY(auto hierarchy, cgroup::hierarchy::open());
        tree_.emplace(std::move(hierarchy), paths(settings_.cgroup_root, host.node_instance()), settings_);
        return {};
    }

    result<sdk::reply> ensure_pod(const sdk::request& request, sdk::op&) {
        GANTRY_TRY(const auto pod, parse_pod_request(request.bytes));
        GANTRY_CHECK(prepare());
        GANTRY_TRY(const auto group, tree_->ensure(pod));
        return reply_of({{"cgroupParent", group}});
    }

    result<sdk::reply> remove_pod(const sdk::request& request, sdk::op& op) {
        GANTRY_TRY(const auto uid, parse_uid(request.bytes));
        GANTRY_CHECK(tree_->remove(uid, std::min(op.deadline(), std::chrono::steady_clock::now() + removal_time)));
        return sdk::reply{.bytes = "{}"};
    }

    result<sdk::reply> list_pods(const sdk::request&, sdk::op&) {
        GANTRY_TRY(const auto pods, tree_->list());
        json::array out;
        for (const auto& pod : pods) out.push_back({{"uid", pod.uid}, {"cgroupParent", pod.group}});
        return reply_of({{"pods", std::move(out)}});
    }

    result<sdk::reply> read_capacity(const sdk::request&, sdk::op&) {
        GANTRY_TRY(const auto machine, read_machine(std::string(host_->state_dir())));
        const int version = tree_->hierarchy().version() == cgroup::version::v2 ? 2 : 1;
        return reply_of({{"capacity", to_json(total(machine, settings_))},
                         {"allocatable", to_json(allocatable(machine, settings_))},
                         {"cgroup", {{"version", version}, {"driver", "cgroupfs"}}}});
    }

    result<sdk::reply> stats(const sdk::request& request, sdk::op&) {
        GANTRY_TRY(const auto asked, base::parse_json(request.bytes.empty() ? "{}" : request.bytes, "request"));
        std::string wanted;
        if (asked.is_object() && asked.get_object().contains("uid")) {
            GANTRY_TRY(wanted, parse_uid(request.bytes));
        }
        GANTRY_TRY(auto node, node_usage());
        GANTRY_TRY(const auto pods, tree_->list());
        json::array list;
        for (const auto& pod : pods) {
            if (!wanted.empty() && pod.uid != wanted) continue;
            if (const auto used = tree_->hierarchy().usage(pod.group))
                list.push_back(to_json(pod, *used)); // else it just went
        }
        if (!wanted.empty() && list.empty())
            return error{.code = code::not_found, .message = "pod " + wanted + " has no cgroup on this node"};
        return reply_of({{"node", std::move(node)}, {"pods", std::move(list)}});
    }

private:
    /// Before the first pod. Bounding kubepods can fail while its pods use more than that: it is tried again with the
    /// next pod, and no pod waits for it.
    result<void> prepare() {
        GANTRY_CHECK(tree_->prepare());
        if (tree_->is_bounded()) return {};
        GANTRY_TRY(const auto machine, read_machine(std::string(host_->state_dir())));
        if (const auto bounded = tree_->bound(enforced(machine, settings_)); !bounded)
            host_->warn("kubepods is not bounded to the allocatable resources", {{"error", bounded.error().message}});
        return {};
    }

    result<json::object> node_usage() const {
        GANTRY_TRY(const auto memory, read_memory());
        GANTRY_TRY(const auto threads, read_threads());
        GANTRY_TRY(const auto root, tree_->hierarchy().usage("/"));
        return json::object{{"cpuNanos", root.cpu_ns},
                            {"memoryTotal", memory.total},
                            {"memoryUsage", memory.used()},
                            {"memoryWorkingSet", memory.working_set()},
                            {"memoryAvailable", memory.total - memory.working_set()},
                            {"swapTotal", memory.swap_total},
                            {"swapUsage", memory.swap_total - memory.swap_free},
                            {"pids", threads}};
    }

    sdk::host* host_ = nullptr;
    config settings_;
    std::optional<pod_tree> tree_;
};

} // namespace gantry::node_linux

// clang-format off
GANTRY_PLUGIN(gantry::node_linux::node_linux_plugin, {
  "id": "dev.gantry.node-linux",
  "name": "node-linux",
  "version": "0.1.0",
  "vendor": "gantry",
  "license": "Apache-2.0",
  "description": "cgroups, capacity and usage of a Linux node",
  "capabilities": ["gantry.resources/1-draft"],
  "services": ["gantry.config/1", "gantry.executor/1"],
  "config": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "cgroupRoot": {"type": "string", "pattern": "^(/|(/[A-Za-z0-9_.:-]*[A-Za-z0-9_:-])+)$", "default": "/"},
      "systemReserved": {
        "type": "object",
        "additionalProperties": false,
        "properties": {"cpu": {"type": "string"}, "memory": {"type": "string"},
                       "ephemeral-storage": {"type": "string"}, "pid": {"type": "string"}}
      },
      "kubeReserved": {
        "type": "object",
        "additionalProperties": false,
        "properties": {"cpu": {"type": "string"}, "memory": {"type": "string"},
                       "ephemeral-storage": {"type": "string"}, "pid": {"type": "string"}}
      },
      "evictionHard": {
        "type": "object",
        "additionalProperties": false,
        "properties": {"memory.available": {"type": "string", "default": "100Mi"},
                       "nodefs.available": {"type": "string", "default": "10%"}}
      },
      "enforceNodeAllocatable": {"type": "array", "items": {"type": "string", "enum": ["pods", "none"]}, "default": ["pods"]},
      "maxPods": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 110},
      "podsPerCore": {"type": "integer", "minimum": 0, "maximum": 10000, "default": 0},
      "podPidsLimit": {"type": "integer", "minimum": -1, "default": -1},
      "cpuCFSQuota": {"type": "boolean", "default": true},
      "cpuCFSQuotaPeriod": {"type": "string", "default": "100ms"}
    }
  }
})
// clang-format on
