// RunPodSandbox and what undoes it.
#include <unistd.h>

#include <climits>
#include <csignal>

#include "base/files.hpp"
#include "gantry/abi/draft/network.h"
#include "plugins/cri-native/runtime/canonical.hpp"
#include "plugins/cri-native/runtime/clock.hpp"
#include "plugins/cri-native/runtime/describe.hpp"
#include "plugins/cri-native/runtime/engine.hpp"
#include "plugins/cri-native/runtime/network.hpp"
#include "plugins/cri-native/runtime/spec/dns.hpp"
#include "plugins/cri-native/runtime/spec/sandbox.hpp"

namespace gantry::cri_native {

namespace {

constexpr auto network_timeout = std::chrono::seconds(60);
constexpr auto shutdown_timeout = std::chrono::seconds(10);

std::string node_hostname() {
    char name[HOST_NAME_MAX + 1] = {};
    return ::gethostname(name, HOST_NAME_MAX) == 0 ? name : "localhost";
}

result<void> write_etc(const std::string& dir, const store::SandboxRecord& record) {
    const auto& dns = record.config().dns_config();
    dns_settings settings{.servers = {dns.servers().begin(), dns.servers().end()},
                          .searches = {dns.searches().begin(), dns.searches().end()},
                          .options = {dns.options().begin(), dns.options().end()}};
    std::string resolv = resolv_conf(settings);
    if (resolv.empty()) {
        if (auto own = base::read_file("/etc/resolv.conf", 1u << 20); own) resolv = *std::move(own);
    }
    GANTRY_CHECK(base::write_file_atomic(dir + "/resolv.conf", resolv, 0644));
    GANTRY_CHECK(base::write_file_atomic(dir + "/hostname", record.hostname() + "\n", 0644));
    return base::write_file_atomic(dir + "/hosts", hosts_file(record.hostname(), {}), 0644);
}

} // namespace

op_task<cri::RunPodSandboxResponse> engine::run_pod_sandbox(cri::RunPodSandboxRequest request, sdk::op op) {
    GANTRY_CO_CHECK(check_sandbox(request));
    const auto& metadata = request.config().metadata();
    const std::string name = sandbox_name(metadata);
    for (const auto& [id, present] : sandboxes_) {
        if (sandbox_name(present->record.config().metadata()) != name) continue;
        if (present->ready() && canonical(present->record.config()) == canonical(request.config())) {
            cri::RunPodSandboxResponse response;
            response.set_pod_sandbox_id(id);
            co_return response;
        }
        co_return error{.code = code::exists,
                        .message = "sandbox " + name + " exists as " + id + "; remove it or raise metadata.attempt"};
    }
    if (!reserved_.insert(name).second)
        co_return error{.code = code::busy, .message = "sandbox " + name + " is being made", .retryable = true};

    const auto pod = std::make_shared<sandbox>();
    auto& record = pod->record;
    record.set_id(store::new_id());
    *record.mutable_config() = std::move(*request.mutable_config());
    record.set_runtime_handler(request.runtime_handler());
    record.set_created_ns(unix_now());
    const auto& asked = record.config();
    record.set_hostname(asked.hostname().empty() ? node_hostname() : asked.hostname());
    record.set_network(asked.linux().security_context().namespace_options().network() != cri::NODE);
    record.set_own_cgroup_parent(asked.linux().cgroup_parent().empty());
    record.set_cgroup_parent(record.own_cgroup_parent()
                                 ? "/gantry-" + std::string(host_.node_instance()) + "/sandboxes/" + record.id()
                                 : asked.linux().cgroup_parent());

    const auto lock = co_await pod->changing.lock(host_);
    auto made = co_await set_up(pod, op);
    if (made && op.cancelled()) made = op.cancelled_error();
    reserved_.erase(name);
    if (!made) {
        auto undone = co_await tear_down(pod);
        if (undone) undone = co_await erase(pod);
        if (!undone) {
            // Listed as not ready, so that whoever looks after the pod stops and removes it.
            host_.warn(undone.error().message, {{"sandbox", record.id()}});
            sandboxes_.emplace(record.id(), pod);
        }
        co_return made.error();
    }
    cri::RunPodSandboxResponse response;
    response.set_pod_sandbox_id(record.id());
    co_return response;
}

op_task<void> engine::set_up(sandbox_ptr pod, sdk::op op) {
    auto& record = pod->record;
    const auto plan =
        sandbox_plan_of(record, records_.supervisor_dir(record.id()), settings_.shm_bytes, supervisor_cgroup_);
    const auto prepared = co_await host_.work([&]() -> result<void> {
        GANTRY_CHECK(records_.make_sandbox(record.id()));
        GANTRY_CHECK(records_.put(record));
        GANTRY_CHECK(write_etc(records_.etc_dir(record.id()), record));
        if (!record.config().log_directory().empty())
            GANTRY_CHECK(base::make_dirs(record.config().log_directory(), 0755));
        return {};
    });
    if (!prepared) co_return prepared.error();
    op.step("files");

    auto spawned = co_await outcome_of<void>(host_, [&](launch::callback<void> ready) {
        auto client = launch::client::spawn(*supervisor_image_, plan, events_for(pod), ready);
        if (!client) return ready(client.error());
        pod->supervisor = *std::move(client);
        if (const auto watched = watch(pod); !watched) ready(watched.error());
    });
    if (!spawned) co_return spawned.error();
    op.step("supervisor");

    if (record.network()) {
        GANTRY_CO_CHECK(co_await connect_network(pod, op));
        op.step("network");
    }
    if (!pod->supervisor)
        co_return error{.code = code::unavailable,
                        .message = "the supervisor of sandbox " + record.id() + " died at once",
                        .retryable = true};
    record.set_ready(true);
    GANTRY_CO_CHECK(records_.put(record));
    sandboxes_.emplace(record.id(), pod);
    publish(*pod, cri::CONTAINER_STARTED_EVENT);
    co_return result<void>{};
}

op_task<void> engine::connect_network(sandbox_ptr pod, sdk::op op) {
    auto& record = pod->record;
    GANTRY_CO_TRY(auto netns, launch::open_netns(records_.supervisor_dir(record.id())));
    sdk::request request;
    request.bytes = network_request(record.id(), record.config());
    request.key = record.id();
    request.fds.emplace_back(netns.release());
    const auto deadline = std::min(op.deadline(), std::chrono::steady_clock::now() + network_timeout);
    const auto added = co_await host_.call(GANTRY_NETWORK, "add", request, deadline);
    if (!added) {
        error e = added.error();
        e.message = "network of pod " + sandbox_name(record.config().metadata()) + ": " + e.message;
        co_return e;
    }
    GANTRY_CO_TRY(const auto ips, addresses_of(added->bytes));
    for (const auto& ip : ips) record.add_ips(ip);
    co_return result<void>{};
}

op_task<void> engine::disconnect_network(sandbox_ptr pod) {
    auto& record = pod->record;
    if (!record.network()) co_return result<void>{};
    sdk::request request;
    request.bytes = network_request(record.id(), record.config());
    request.key = record.id();
    if (auto netns = launch::open_netns(records_.supervisor_dir(record.id())); netns)
        request.fds.emplace_back(netns->release());
    const auto deadline = std::chrono::steady_clock::now() + network_timeout;
    const auto deleted = co_await host_.call(GANTRY_NETWORK, "del", request, deadline);
    if (!deleted) {
        error e = deleted.error();
        e.message = "take the network of pod " + sandbox_name(record.config().metadata()) + " away: " + e.message;
        e.retryable = true;
        co_return e;
    }
    co_return result<void>{};
}

op_task<void> engine::tear_down(sandbox_ptr pod) {
    if (pod->stopped) co_return result<void>{};
    std::vector<container_ptr> all;
    for (const auto& [id, one] : pod->containers) all.push_back(one);
    for (const auto& one : all) GANTRY_CO_CHECK(co_await kill(one));
    GANTRY_CO_CHECK(co_await disconnect_network(pod));
    if (pod->supervisor) {
        const auto ended = co_await outcome_within<void>(host_, shutdown_timeout, [&](launch::callback<void> done) {
            pod->supervisor->shutdown(true, std::move(done));
        });
        // One that died meanwhile has ended as well; one that hangs is not waited for twice.
        const bool hangs = !ended && ended.error().code == code::timeout;
        if (!ended && !hangs && ended.error().code != code::unavailable) co_return ended.error();
        if (hangs && pod->supervisor && pod->supervisor->pid() > 0) ::kill(pod->supervisor->pid(), SIGKILL);
        pod->readable.end();
        pod->supervisor.reset();
    }
    pod->stopped = true;
    publish(*pod, cri::CONTAINER_STOPPED_EVENT);
    co_return result<void>{};
}

op_task<void> engine::erase(sandbox_ptr pod) {
    const auto& record = pod->record;
    std::vector<container_ptr> all;
    for (const auto& [id, one] : pod->containers) all.push_back(one);
    for (const auto& one : all) GANTRY_CO_CHECK(co_await destroy(one));
    const auto erased = co_await host_.work([&]() -> result<void> {
        GANTRY_CHECK(launch::remove_sandbox(records_.supervisor_dir(record.id())));
        if (record.own_cgroup_parent())
            GANTRY_CHECK(cgroups_->remove(record.cgroup_parent(), std::chrono::steady_clock::now() + kill_timeout));
        return records_.erase_sandbox(record.id());
    });
    if (!erased) co_return erased.error();
    pod->removed = true;
    if (sandboxes_.erase(record.id()) != 0) publish(*pod, cri::CONTAINER_DELETED_EVENT);
    co_return result<void>{};
}

op_task<cri::StopPodSandboxResponse> engine::stop_pod_sandbox(cri::StopPodSandboxRequest request, sdk::op) {
    if (const auto pod = find_sandbox(request.pod_sandbox_id())) {
        const auto lock = co_await pod->changing.lock(host_);
        GANTRY_CO_CHECK(co_await tear_down(pod));
    }
    co_return cri::StopPodSandboxResponse{};
}

op_task<cri::RemovePodSandboxResponse> engine::remove_pod_sandbox(cri::RemovePodSandboxRequest request, sdk::op) {
    if (const auto pod = find_sandbox(request.pod_sandbox_id())) {
        const auto lock = co_await pod->changing.lock(host_);
        GANTRY_CO_CHECK(co_await tear_down(pod));
        if (!pod->removed) GANTRY_CO_CHECK(co_await erase(pod));
    }
    co_return cri::RemovePodSandboxResponse{};
}

op_task<cri::PodSandboxStatusResponse> engine::pod_sandbox_status(cri::PodSandboxStatusRequest request, sdk::op) {
    const auto pod = find_sandbox(request.pod_sandbox_id());
    if (!pod)
        co_return error{.code = code::not_found, .message = "sandbox " + request.pod_sandbox_id() + " does not exist"};
    cri::PodSandboxStatusResponse response;
    *response.mutable_status() = status_of(*pod);
    for (const auto& [id, one] : pod->containers) *response.add_containers_statuses() = status_of(*one);
    response.set_timestamp(unix_now());
    if (request.verbose()) (*response.mutable_info())["info"] = verbose_info(*pod);
    co_return response;
}

op_task<cri::ListPodSandboxResponse> engine::list_pod_sandbox(cri::ListPodSandboxRequest request, sdk::op) {
    cri::ListPodSandboxResponse response;
    for (const auto& [id, pod] : sandboxes_)
        if (matches(request.filter(), *pod)) *response.add_items() = summary_of(*pod);
    co_return response;
}

} // namespace gantry::cri_native
