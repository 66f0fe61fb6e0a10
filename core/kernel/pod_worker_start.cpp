// The worker's way from a spec to running containers.
#include <algorithm>

#include "base/files.hpp"
#include "base/json.hpp"
#include "core/kernel/pod_files.hpp"
#include "core/kernel/pod_worker.hpp"
#include "core/kernel/spawn.hpp"
#include "core/pod/go_duration.hpp"
#include "core/pod/names.hpp"
#include "core/pod/resources.hpp"
#include "core/pod/restart.hpp"
#include "gantry/abi/draft/resources.h"
#include "proto/cri.pb.h"

namespace gantry::core {

namespace asio = boost::asio;
namespace cri = ::runtime::v1;
using namespace std::chrono_literals;

namespace {

/// Between two looks at a container that cannot be made as its spec has it.
constexpr auto config_retry = 10s;
/// After a failed pull the container is looked at again to say that it backs off.
constexpr auto pull_retry = 1s;

} // namespace

asio::awaitable<void> pod_worker::converge() {
    co_await read_messages();
    publish(); // what ended is not ready, also while it is being started again
    while (!interrupted()) {
        const auto actions = compute_actions(pod_->spec, view_);
        if (actions.finished()) {
            begin_ending();
            co_return;
        }
        if (actions.idle()) {
            waiting({});
            break;
        }
        if (!co_await prepare()) co_return;
        if (actions.kill_pod) {
            stop_deadline_.reset();
            if (!co_await stop_all()) co_return;
            stop_deadline_.reset();
            continue;
        }
        if (actions.create_sandbox) {
            if (!co_await create_sandbox(actions.attempt)) co_return;
            continue;
        }
        bool progress = false;
        for (const auto& stop : actions.to_stop) {
            co_await stop_container_task(stop.id, stop.name, stop.message, steady::now() + grace());
            progress = true;
        }
        for (const auto& what : actions.to_start) {
            if (interrupted()) co_return;
            if (co_await start(what)) progress = true;
            if (uncertain_) {
                retry_in(0s, "what the runtime has of it");
                publish();
                co_return;
            }
        }
        if (!progress) break;
    }
    if (interrupted()) co_return;
    publish();
    co_await prune();
}

/// Directories, record, name server configuration and cgroup: once per worker, and only when something is to be made.
asio::awaitable<bool> pod_worker::prepare() {
    if (sandbox_facts_.log_dir.empty()) {
        auto hostname = make_hostname(*pod_, context_.hostname, context_.options.cluster_domain);
        if (!hostname) {
            say(true, "FailedCreatePodSandBox", "Failed to create pod sandbox: " + hostname.error().message);
            retry_in(config_retry, hostname.error().message);
            co_return false;
        }
        const auto dir = pod_dir(context_.options.state_dir, uid_);
        const auto log_dir = context_.options.log_dir + "/" + pod_log_dir(pod_->metadata);
        record_.namespace_ = pod_->metadata.namespace_;
        record_.name = pod_->metadata.name;
        record_.admitted = true;
        std::string resolv_conf;
        result<void> done;
        std::function<void()> work = [&] {
            done = base::make_dirs(dir, 0755);
            for (const auto* list : {&pod_->spec.init_containers, &pod_->spec.containers})
                for (const auto& c : *list)
                    if (done) done = base::make_dirs(log_dir + "/" + c.name, 0755);
            if (done) done = base::write_file_atomic(dir + "/pod.json", encode(record_));
            if (auto text = base::read_file(context_.options.resolv_conf)) resolv_conf = *std::move(text);
            if (only_loopback(parse_resolv_conf(resolv_conf)))
                if (auto text = base::read_file("/run/systemd/resolve/resolv.conf")) resolv_conf = *std::move(text);
            if (pod_->spec.host_network)
                if (auto text = base::read_file(context_.options.hosts_file)) node_hosts_ = *std::move(text);
        };
        co_await context_.files.run(std::move(work));
        if (!done) {
            retry_after_error(done.error(), "make its directories");
            co_return false;
        }
        const auto dns = make_dns(*pod_, {.node = parse_resolv_conf(resolv_conf),
                                          .cluster_servers = context_.options.cluster_dns,
                                          .cluster_domain = context_.options.cluster_domain});
        if (dns.missing_cluster_dns)
            say(true, "MissingClusterDNS",
                "pod: \"" + pod_title(pod_->metadata) + "\". kubelet does not have ClusterDNS IP configured and cannot "
                "create Pod using \"" + pod_->spec.dns_policy + "\" policy. Falling back to \"Default\" policy.");
        if (!dns.cut.empty()) say(true, "DNSConfigForming", dns.cut);
        hostname_ = *std::move(hostname);
        sandbox_facts_.hostname = hostname_.name;
        sandbox_facts_.dns = dns.config;
        sandbox_facts_.log_dir = log_dir;
    }
    if (in_cgroup_) co_return true;
    co_return co_await ensure_cgroup();
}

asio::awaitable<bool> pod_worker::ensure_cgroup() {
    if (context_.resources == nullptr) {
        in_cgroup_ = true;
        co_return true;
    }
    const auto values = pod_cgroup(pod_->spec);
    base::json::object amounts;
    amounts["cpuRequestMilli"] = values.cpu_request_milli;
    amounts["memoryRequest"] = values.memory_request;
    if (values.cpu_limit_milli) amounts["cpuLimitMilli"] = *values.cpu_limit_milli;
    if (values.memory_limit) amounts["memoryLimit"] = *values.memory_limit;
    if (context_.options.pod_pids_limit >= 0) amounts["pidsLimit"] = context_.options.pod_pids_limit;
    base::json::object body;
    body["uid"] = uid_;
    body["qos"] = qos_class(pod_->spec);
    body["resources"] = std::move(amounts);

    op_request request;
    request.bytes = base::to_text(body);
    request.key = uid_;
    call_options options;
    options.pod = pod_key(pod_->metadata);
    options.pod_uid = uid_;
    waiting("its cgroup");
    auto reply = co_await context_.resources->call(GANTRY_OP(GANTRY_RESOURCES, gantry_resources, ensure_pod),
                                                   std::move(request), std::move(options));
    if (!reply) {
        say(true, "FailedCreatePodContainer",
            "unable to ensure pod container exists: failed to create container for " + uid_ + " : " +
                reply.error().message);
        retry_after_error(reply.error(), "make its cgroup");
        co_return false;
    }
    const auto json = base::parse_json(reply->bytes, "ensure_pod");
    if (json && json->is_object())
        sandbox_facts_.cgroup_parent = base::string_at(json->get_object(), "cgroupParent");
    in_cgroup_ = true;
    co_return true;
}

asio::awaitable<bool> pod_worker::create_sandbox(std::uint32_t attempt) {
    if (!view_.sandboxes.empty())
        say(false, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
    sandbox_facts_.attempt = attempt;
    const auto self = ref();
    cri::RunPodSandboxRequest request;
    fill_sandbox_config(*request.mutable_config(), *pod_, sandbox_facts_);
    request.set_runtime_handler(pod_->spec.runtime_class_name);
    waiting("its sandbox");

    const auto failed = [&](const error& e) {
        if (interrupted()) {
            uncertain_ = true;
            return false;
        }
        say(true, "FailedCreatePodSandBox", "Failed to create pod sandbox: " + e.message);
        for (const auto& c : pod_->spec.containers) waiting_[c.name] = {"CreatePodSandboxError", e.message};
        retry_after_error(e, "create its sandbox");
        publish();
        return false;
    };
    auto id = co_await run_sandbox(*slot_->runtime, self, request);
    if (!id) co_return failed(id.error());
    auto status = co_await sandbox_status(*slot_->runtime, self, *id);
    if (!status) co_return failed(status.error());
    status->host_network = pod_->spec.host_network;
    view_.merge(*std::move(status));

    result<void> written;
    const auto text = make_hosts(pod_->spec, hostname_, view_.sandbox()->ips, node_hosts_);
    std::function<void()> write = [&] {
        written = base::write_file_atomic(hosts_path(context_.options.state_dir, uid_), text, 0644);
    };
    co_await context_.files.run(std::move(write));
    if (!written) co_return failed(written.error());
    waiting_.clear();
    not_before_.clear();
    error_delay_ = {};
    publish();
    co_return true;
}

void pod_worker::block(const std::string& container, const char* reason, const std::string& message,
                       steady::duration delay) {
    waiting_[container] = {reason, message};
    not_before_[container] = steady::now() + delay;
    retry_in(delay, "container " + container + ": " + reason + (message.empty() ? "" : ": " + message));
}

/// When a container ended; a runtime that does not know says that it was after its start.
wall_time pod_worker::exit_time(const container_view& c) const {
    const auto it = record_.restarts.find(c.name);
    return std::max(c.finished_at, it == record_.restarts.end() ? c.started_at : it->second.last_step);
}

/// True while a container that ended has to wait.
bool pod_worker::in_backoff(const model::container& c, const std::string& field_path) {
    const auto* last = view_.newest(c.name);
    if (last == nullptr || last->phase != container_phase::exited) return false;
    const auto now = std::chrono::system_clock::now();
    auto& b = record_.restarts[c.name];
    const auto due = b.next_try(restart_hash(c), exit_time(*last), context_.options.restart_backoff);
    if (due <= now) return false;
    const auto message = "back-off " + go_duration(b.delay) + " restarting failed container=" + c.name +
                         " pod=" + pod_title(pod_->metadata);
    const waiting_reason reason{"CrashLoopBackOff", message};
    if (waiting_[c.name] != reason) {
        waiting_[c.name] = reason;
        say(true, "BackOff",
            "Back-off restarting failed container " + c.name + " in pod " + pod_title(pod_->metadata), field_path);
    }
    retry_at(due, "container " + c.name + ": " + message);
    return true;
}

/// Starts one container; false when it has to wait or failed.
asio::awaitable<bool> pod_worker::start(const pod_actions::start& what) {
    const auto pod = pod_; // the spec may be replaced meanwhile
    const auto& c = what.init ? pod->spec.init_containers[what.index] : pod->spec.containers[what.index];
    const auto path = std::string(what.init ? "spec.initContainers{" : "spec.containers{") + c.name + "}";
    if (const auto control = not_before_.find(c.name);
        control != not_before_.end() && control->second > steady::now()) {
        retry_in(control->second - steady::now(), waiting_for_);
        co_return false;
    }
    if (in_backoff(c, path)) co_return false;

    const auto* newest = view_.newest(c.name);
    if (newest != nullptr && newest->phase == container_phase::created) co_return co_await start_created(c, path, newest->id);
    if (newest != nullptr && newest->phase == container_phase::unknown) {
        const auto id = newest->id;
        co_await stop_container_task(id, c.name, "Container " + c.name + " is in unknown state, try killing it before restart",
                                     steady::now() + grace());
    }

    image_request request;
    request.client = slot_->image;
    request.origin.uid = uid_;
    request.origin.namespace_ = pod->metadata.namespace_;
    request.origin.pod = pod->metadata.name;
    request.origin.field_path = path;
    request.pod_key = pod_key(pod->metadata);
    request.image = c.image;
    request.policy = c.image_pull_policy;
    request.pacing = context_.options.pull_backoff;
    waiting("image " + c.image);
    auto image = co_await context_.images.ensure(request, pulls_[c.image]);
    if (interrupted() || pod_ != pod) co_return pod_ != pod;
    if (const auto* no = std::get_if<image_failure>(&image)) {
        steady::duration delay = no->reason == "ErrImagePull" ? steady::duration(pull_retry) : config_retry;
        if (no->retry_at != wall_time{})
            delay = std::max<steady::duration>(no->retry_at - std::chrono::system_clock::now(), 1ms);
        block(c.name, no->reason.c_str(), no->message, delay);
        co_return false;
    }
    const auto last = context_.statuses.find(uid_);
    const auto attempt = next_attempt(view_, c.name, last ? last->status.get() : nullptr);
    co_return co_await launch(c, path, std::get<image_facts>(image), attempt);
}

asio::awaitable<bool> pod_worker::launch(const model::container& c, const std::string& field_path,
                                         const image_facts& image, std::uint32_t attempt) {
    const auto self = ref();
    const auto sandbox = *view_.sandbox();
    container_facts facts;
    facts.attempt = attempt;
    facts.image = image;
    facts.env.node_name = context_.options.name;
    facts.env.allocatable = context_.allocatable;
    if (!context_.options.host_ip.empty()) facts.env.host_ips = {context_.options.host_ip};
    facts.env.pod_ips = pod_->spec.host_network ? facts.env.host_ips : sandbox.ips;
    facts.hosts_path = hosts_path(context_.options.state_dir, uid_);
    facts.termination_log_path = termination_path(context_.options.state_dir, uid_, c.name, attempt);
    result<void> made_file;
    std::function<void()> make_file = [&] { made_file = make_termination_file(facts.termination_log_path); };
    co_await context_.files.run(std::move(make_file));
    if (!made_file) {
        say(true, "Failed", "Error: " + made_file.error().message, field_path);
        block(c.name, "CreateContainerError", made_file.error().message, config_retry);
        co_return false;
    }

    cri::CreateContainerRequest request;
    request.set_pod_sandbox_id(sandbox.id);
    auto filled = fill_container_config(*request.mutable_config(), *pod_, c, facts, context_.machine);
    if (!filled) {
        say(true, "Failed", "Error: " + filled.error().message, field_path);
        block(c.name, "CreateContainerConfigError", filled.error().message, config_retry);
        co_return false;
    }
    sandbox_facts_.attempt = sandbox.attempt;
    fill_sandbox_config(*request.mutable_sandbox_config(), *pod_, sandbox_facts_);
    // Looked at now: the new instance may be reported before its create call returns.
    const auto* last = view_.newest(c.name);
    const bool again = last != nullptr && last->phase == container_phase::exited;
    const auto ended_at = again ? exit_time(*last) : wall_time{};
    waiting("container " + c.name + " to be created");
    auto id = co_await create_container(*slot_->runtime, self, request);
    if (!id) {
        if (id.error().code == code::cancelled || id.error().code == code::timeout) uncertain_ = true;
        if (interrupted()) co_return false;
        say(true, "Failed", "Error: " + id.error().message, field_path);
        block(c.name, "CreateContainerError", id.error().message, config_retry);
        co_return false;
    }
    say(false, "Created", "Container created", field_path);
    container_view made;
    made.id = *id;
    made.sandbox_id = sandbox.id;
    made.name = c.name;
    made.image = c.image;
    made.image_ref = image.ref;
    made.attempt = attempt;
    made.hash = container_hash(c);
    made.created_at = std::chrono::system_clock::now();
    made.phase = container_phase::created;

    // This try counts for the next one's back-off.
    if (again) {
        record_.restarts[c.name].step(restart_hash(c), ended_at, std::chrono::system_clock::now(),
                                      context_.options.restart_backoff);
        save();
    }
    view_.merge(std::move(made));
    co_return co_await start_created(c, field_path, *id);
}

asio::awaitable<bool> pod_worker::start_created(const model::container& c, const std::string& field_path,
                                                const std::string& id) {
    const auto self = ref();
    const auto* made = view_.find(id);
    const auto sandbox_id = made != nullptr ? made->sandbox_id : std::string();
    const auto name = c.name;
    waiting("container " + name + " to start");
    auto started = co_await start_container(*slot_->runtime, self, id);
    if (!started) {
        if (started.error().code == code::cancelled || started.error().code == code::timeout) uncertain_ = true;
        if (interrupted()) co_return false;
        say(true, "Failed", "Error: " + started.error().message, field_path);
        // Most runtimes keep a container that could not start, with the reason.
        co_await refresh_container(id, sandbox_id);
        const auto* now = view_.find(id);
        if (now != nullptr && now->phase == container_phase::exited) {
            waiting_.erase(name);
            co_return true;
        }
        if (now != nullptr) {
            if (co_await remove_container(*slot_->runtime, self, id)) view_.erase(id);
        }
        block(name, "RunContainerError", started.error().message, config_retry);
        co_return false;
    }
    say(false, "Started", "Container started", field_path);
    waiting_.erase(name);
    not_before_.erase(name);
    error_delay_ = {};
    co_return co_await refresh_container(id, sandbox_id);
}

/// Removes what nobody asks for: all but the last two instances of each container, and sandboxes left empty.
asio::awaitable<void> pod_worker::prune() {
    const auto self = ref();
    std::map<std::string, int> seen;
    std::vector<std::string> old;
    for (const auto& c : view_.containers)
        if (++seen[c.name] > 2 && c.phase != container_phase::running) old.push_back(c.id);
    for (const auto& id : old) {
        if (interrupted()) co_return;
        if (co_await remove_container(*slot_->runtime, self, id)) view_.erase(id);
    }
    old.clear();
    for (std::size_t i = 1; i < view_.sandboxes.size(); ++i) {
        const auto& sandbox = view_.sandboxes[i];
        const bool used = std::any_of(view_.containers.begin(), view_.containers.end(),
                                      [&](const container_view& c) { return c.sandbox_id == sandbox.id; });
        if (!used && !sandbox.ready) old.push_back(sandbox.id);
    }
    for (const auto& id : old) {
        if (interrupted()) co_return;
        if (co_await remove_sandbox(*slot_->runtime, self, id)) view_.erase_sandbox(id);
    }
}

} // namespace gantry::core
