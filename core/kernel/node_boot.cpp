// Start, audit and the removal of what nobody owns.
#include <filesystem>

#include "base/files.hpp"
#include "base/json.hpp"
#include "core/kernel/kernel_impl.hpp"
#include "core/log/log.hpp"
#include "gantry/abi/draft/resources.h"

namespace gantry::core {

namespace asio = boost::asio;
namespace json = base::json;
using namespace std::chrono_literals;

namespace {

std::int64_t number(const json::value* from, std::string_view key) {
    const auto* object = from != nullptr ? from->if_object() : nullptr;
    const auto* value = object != nullptr ? object->if_contains(key) : nullptr;
    return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

const json::value* member(const json::value& from, std::string_view key) {
    const auto* object = from.if_object();
    return object != nullptr ? object->if_contains(key) : nullptr;
}

/// Per-CPU files that a container could use to slow the machine down.
std::vector<std::string> throttle_paths() {
    std::vector<std::string> out;
    std::error_code ec;
    for (int cpu = 0;; ++cpu) {
        const auto dir = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
        if (!std::filesystem::exists(dir, ec)) return out;
        if (std::filesystem::exists(dir + "/thermal_throttle", ec)) out.push_back(dir + "/thermal_throttle");
    }
}

} // namespace

asio::awaitable<result<void>> node::impl::read_state() {
    result<void> done;
    std::function<void()> work = [&] {
        const auto dir = options.state_dir + "/pods";
        done = base::make_dirs(dir, 0755);
        if (done) done = base::make_dirs(options.log_dir, 0755);
        if (!done) return;
        auto uids = base::list_dir(dir);
        if (!uids) {
            done = uids.error();
            return;
        }
        for (const auto& uid : *uids) {
            auto text = base::read_file(dir + "/" + uid + "/pod.json");
            auto record = text ? decode_record(*text) : result<pod_record>(text.error());
            if (!record) {
                log::warn("a pod's record cannot be read", {{"uid", uid}, {"error", record.error().message}});
                record = pod_record{};
            }
            records.emplace(uid, *std::move(record));
        }
        context.machine.masked_paths = throttle_paths();
    };
    co_await files.run(std::move(work));
    co_return done;
}

/// Learns the machine's amounts, then follows runtimes and sources.
asio::awaitable<void> node::impl::boot() {
    std::chrono::steady_clock::duration pause = 100ms;
    while (clients.resources != nullptr) {
        op_request request;
        request.bytes = "{}";
        auto reply = co_await clients.resources->call(GANTRY_OP(GANTRY_RESOURCES, gantry_resources, capacity),
                                                      std::move(request));
        if (reply) {
            const auto value = base::parse_json(reply->bytes, "capacity");
            const json::value none;
            const auto& body = value ? *value : none;
            const auto* capacity = member(body, "capacity");
            const auto* allocatable = member(body, "allocatable");
            const auto* cgroup = member(body, "cgroup");
            context.machine.memory_capacity = number(capacity, "memory");
            context.machine.cgroup_version = number(cgroup, "version") == 2 ? 2 : 1;
            node_amounts amounts;
            amounts.cpu_milli = number(allocatable, "cpuMilli");
            amounts.memory = number(allocatable, "memory");
            amounts.ephemeral_storage = number(allocatable, "ephemeralStorage");
            amounts.pods = number(allocatable, "pods");
            if (amounts.pods == 0) amounts.pods = options.max_pods;
            admission.allocatable = amounts;
            context.allocatable["cpu"] = model::quantity::of_milli(amounts.cpu_milli);
            context.allocatable["memory"] = model::quantity::of_units(amounts.memory);
            context.allocatable["ephemeral-storage"] = model::quantity::of_units(amounts.ephemeral_storage);
            break;
        }
        if (co_await is_cancelled()) co_return;
        log::warn("the node's capacity is not known yet",
                  {{"plugin", clients.resources->instance()}, {"error", reply.error().message}});
        signal timer(executor);
        co_await timer.wait_until(std::chrono::steady_clock::now() + pause);
        pause = std::min<std::chrono::steady_clock::duration>(pause * 2, 5s);
    }
    if (stopping) co_return;
    for (const auto& r : runtimes) loops.add(r->run());
    for (const auto& s : sources) loops.add(s->run());
}

/// The safety net: everything is looked at again, whatever was or was not reported.
asio::awaitable<void> node::impl::audit() {
    signal timer(executor);
    while (!co_await is_cancelled()) {
        audit_due = std::chrono::steady_clock::now() + options.audit_period;
        if (!co_await timer.wait_until(audit_due)) co_return;
        for (const auto& r : runtimes)
            if (r->slot().ready) co_await r->list();
        swept = false;
        co_await sweep();
    }
}

/// Nothing is removed before every source and every runtime has told all it has.
asio::awaitable<void> node::impl::sweep() {
    for (const auto& [uid, worker] : workers) worker->wake();
    if (!all_ready() || stopping) co_return;
    auto orphans = std::exchange(strays, {});
    for (auto& [uid, found] : orphans)
        if (!workers.contains(uid)) start_orphan(uid, std::move(found));
    if (std::exchange(swept, true)) co_return;
    co_await remove_orphan_cgroups();
    co_await remove_orphan_records();
}

asio::awaitable<void> node::impl::remove_orphan_cgroups() {
    if (clients.resources == nullptr) co_return;
    op_request list;
    list.bytes = "{}";
    auto reply = co_await clients.resources->call(GANTRY_OP(GANTRY_RESOURCES, gantry_resources, list_pods),
                                                  std::move(list));
    const auto body = reply ? base::parse_json(reply->bytes, "list_pods") : result<json::value>(reply.error());
    if (!body) {
        log::warn("pod cgroups cannot be listed", {{"error", body.error().message}});
        co_return;
    }
    const auto* pods_listed = member(*body, "pods");
    if (pods_listed == nullptr || !pods_listed->is_array()) co_return;
    for (const auto& item : pods_listed->get_array()) {
        const auto* uid_value = member(item, "uid");
        if (uid_value == nullptr || !uid_value->is_string()) continue;
        const std::string uid(uid_value->get_string().data(), uid_value->get_string().size());
        if (workers.contains(uid) || strays.contains(uid)) continue;
        log::info("removing the cgroup of a pod that is gone", {{"uid", uid}});
        json::object body_out;
        body_out["uid"] = uid;
        op_request remove;
        remove.bytes = base::to_text(body_out);
        remove.key = uid;
        auto removed = co_await clients.resources->call(GANTRY_OP(GANTRY_RESOURCES, gantry_resources, remove_pod),
                                                        std::move(remove));
        if (!removed) log::warn("a pod's cgroup stays", {{"uid", uid}, {"error", removed.error().message}});
    }
}

asio::awaitable<void> node::impl::remove_orphan_records() {
    const auto orphans = std::exchange(records, {});
    for (const auto& [uid, record] : orphans) {
        if (workers.contains(uid)) continue;
        files.post([state = options.state_dir + "/pods/" + uid,
                    logs = options.log_dir + "/" + record.namespace_ + "_" + record.name + "_" + uid, uid = uid] {
            for (const auto& dir : {state, logs})
                if (auto removed = base::remove_tree(dir); !removed)
                    log::warn("a directory of a pod that is gone stays", {{"uid", uid}, {"error", removed.error().message}});
        });
    }
    co_return;
}

} // namespace gantry::core
