// The start of the runtime: opens what it needs and takes over the pods that run already.
#include <sys/epoll.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/files.hpp"
#include "plugins/cri-native/runtime/clock.hpp"
#include "plugins/cri-native/runtime/engine.hpp"

namespace gantry::cri_native {

namespace {

constexpr auto recovery_timeout = std::chrono::seconds(10);
constexpr auto report_grace = std::chrono::seconds(1);

/// A hexadecimal field of /proc/self/status.
std::uint64_t status_mask(const std::string& status, std::string_view field) {
    const auto at = status.find("\n" + std::string(field) + ":");
    if (at == std::string::npos) return 0;
    return std::strtoull(status.c_str() + at + field.size() + 2, nullptr, 16);
}

/// The least value that oom_score_adj of a child can be given: lower than one's own needs CAP_SYS_RESOURCE.
int lowest_oom_score(std::uint64_t effective_capabilities) {
    constexpr int cap_sys_resource = 24;
    if (effective_capabilities >> cap_sys_resource & 1) return -1000;
    const auto own = base::read_file("/proc/self/oom_score_adj", 64);
    return own ? std::atoi(own->c_str()) : 0;
}

bool exited(const launch::container_info& info) { return info.state == launch::container_state::exited; }

} // namespace

op_task<void> engine::open_all() {
    const auto opened = co_await host_.work([&]() -> result<void> {
        GANTRY_TRY(cgroups_, cgroup::hierarchy::open());
        GANTRY_TRY(supervisor_image_, launch::supervisor_image::make());
        GANTRY_CHECK(base::make_dirs(containers_dir_));
        const std::string seccomp_dir = std::string(host_.state_dir()) + "/seccomp";
        GANTRY_CHECK(base::make_dirs(seccomp_dir));
        GANTRY_TRY(const auto compiler, find_helper(settings_, "gantry-seccomp"));
        seccomp_ = std::make_unique<seccomp_cache>(host_, seccomp_dir, compiler);
        GANTRY_CHECK(seccomp_->sweep());

        images::store_options store;
        store.dir = settings_.image_dir.empty() ? std::string(host_.state_dir()) + "/images" : settings_.image_dir;
        GANTRY_TRY(store.helper, find_helper(settings_, "gantry-cri-helper"));
        GANTRY_TRY(images_, images::image_store::open(std::move(store)));

        GANTRY_TRY(const auto status, base::read_file("/proc/self/status", 1u << 16));
        available_capabilities_ = status_mask(status, "CapBnd");
        lowest_oom_score_ = lowest_oom_score(status_mask(status, "CapEff"));
        if (lowest_oom_score_ > -1000)
            host_.warn("this process may not lower oom_score_adj (no CAP_SYS_RESOURCE): containers and supervisors get "
                       "at least " +
                       std::to_string(lowest_oom_score_) + ", whatever their pods ask for");
        rlimit stack{};
        if (::getrlimit(RLIMIT_STACK, &stack) != 0) return sys_error("getrlimit", errno);
        stack_limit_ = stack.rlim_cur;
        rlimit files{};
        if (::getrlimit(RLIMIT_NOFILE, &files) == 0)
            settings_.open_files = std::min<std::uint64_t>(settings_.open_files, files.rlim_max);

        GANTRY_CHECK(cgroups_->create(supervisors_group_, {}));
        return {};
    });
    if (!opened) co_return opened.error();
    supervisor_cgroup_ = supervisor_cgroup_of(cgroups_->layout(), supervisors_group_);
    co_return co_await recover();
}

op_task<void> engine::recover() {
    auto loaded = co_await host_.work([&]() -> result<store::record_store::contents> {
        GANTRY_TRY(auto contents, records_.load());
        for (const auto& name : contents.leftover) {
            GANTRY_CHECK(launch::remove_sandbox(records_.supervisor_dir(name)));
            GANTRY_CHECK(records_.erase_sandbox(name));
        }
        return contents;
    });
    if (!loaded) co_return loaded.error();
    for (const auto& warning : loaded->warnings) host_.warn(warning);
    std::set<std::string> known;
    for (auto& entry : loaded->entries) {
        for (const auto& record : entry.containers) known.insert(record.id());
        co_await adopt(std::move(entry));
    }
    // Writable layers of containers that no record knows: a reboot forgets records, not layers.
    const auto swept = co_await host_.work([&]() -> result<void> {
        GANTRY_TRY(const auto names, base::list_dir(containers_dir_));
        for (const auto& name : names)
            if (known.count(name) == 0) GANTRY_CHECK(base::remove_tree(writable_dir(name)));
        return {};
    });
    if (!swept) host_.warn(swept.error().message);
    co_return result<void>{};
}

sdk::task<void> engine::adopt(store::record_store::entry entry) {
    const auto pod = std::make_shared<sandbox>();
    pod->record = std::move(entry.sandbox);
    const std::string& id = pod->record.id();
    for (auto& record : entry.containers) {
        const auto one = std::make_shared<container>();
        one->record = std::move(record);
        one->pod = pod;
        one->cgroup = pod->record.cgroup_parent() + "/" + one->record.id();
        one->own_pid_namespace =
            pid_mode_of(one->record.config(), shares_pids(pod->record.config())) == launch::pid_mode::container;
        if (one->record.has_ending()) {
            const auto& ending = one->record.ending();
            one->state = phase::exited;
            one->started_ns = ending.started_ns();
            one->finished_ns = ending.finished_ns();
            one->exit_code = ending.exit_code();
            one->reason = ending.reason();
            one->message = ending.message();
            one->exited.notify(host_);
        }
        if (const auto pinned = images_->pin(one->record.image_id(), one->record.id()); !pinned)
            host_.warn(pinned.error().message, {{"container", one->record.id()}});
        pod->containers.emplace(one->record.id(), one);
        containers_.emplace(one->record.id(), one);
    }
    sandboxes_.emplace(id, pod);

    const auto lock = co_await pod->changing.lock(host_);
    using infos = std::vector<launch::container_info>;
    auto known = co_await outcome_of<infos>(host_, [&](launch::callback<infos> ready) {
        auto client = launch::client::connect(records_.supervisor_dir(pod->record.id()), events_for(pod), ready);
        if (!client) return ready(client.error());
        pod->supervisor = *std::move(client);
        if (const auto watched = watch(pod); !watched) ready(watched.error());
    });
    if (!known) {
        pod->readable.end();
        pod->supervisor.reset();
        infos nothing;
        std::string reason = pod->record.ready() ? "SupervisorLost" : "Unknown";
        co_await settle(pod, std::move(nothing), std::move(reason));
        co_return;
    }
    co_await reconcile(pod, std::move(*known));
}

/// Brings what the supervisor says and what the cgroups hold together.
sdk::task<void> engine::reconcile(sandbox_ptr pod, std::vector<launch::container_info> known) {
    std::vector<container_ptr> open;
    for (const auto& [id, one] : pod->containers)
        if (one->state != phase::exited) open.push_back(one);
    std::map<std::string, launch::container_info> told;
    for (auto& info : known) told[info.id] = std::move(info);
    const auto looked = co_await host_.work([&]() -> result<std::set<std::string>> {
        std::set<std::string> populated;
        const auto deadline = std::chrono::steady_clock::now() + recovery_timeout;
        for (const auto& one : open) {
            const auto info = told.find(one->record.id());
            const bool ended = info == told.end() || exited(info->second);
            // Processes of a container that ended, or that its supervisor never heard of, are nobody's.
            if (ended) GANTRY_CHECK(cgroups_->kill_all(one->cgroup, deadline));
            GANTRY_TRY(const auto pids, cgroups_->processes(one->cgroup));
            if (!ended && !pids.empty()) populated.insert(one->record.id());
        }
        return populated;
    });
    for (const auto& one : open) {
        const auto info = told.find(one->record.id());
        if (info != told.end() && exited(info->second)) mark_exited(one, info->second);
        const bool vanished = looked && looked->count(one->record.id()) == 0;
        // An empty cgroup may also mean that the container ends right now and its supervisor is about to say so.
        if (info != told.end() && vanished && !one->exited.set()) (void)co_await one->exited.wait(host_, report_grace);
        if (one->state == phase::exited) continue;
        if (info == told.end() || vanished) {
            mark_ended(one, 255, "Unknown", "nothing is left of the container, and its end was not seen");
            continue;
        }
        one->pid = info->second.pid;
        one->started_ns = info->second.started_ns;
        const bool running = info->second.state == launch::container_state::running ||
                             info->second.state == launch::container_state::starting;
        one->state = running ? phase::running : phase::created;
    }
}

launch::supervisor_cgroup supervisor_cgroup_of(const cgroup::layout& layout, const std::string& group) {
    launch::supervisor_cgroup own;
    if (!layout.unified.empty()) own.v2 = layout.unified + group;
    // On v1 a service manager ends what is in the service's own group, and memory is what a service is limited in.
    for (const char* controller : {"name=systemd", "memory"}) {
        const std::string point = layout.mount_of(controller);
        if (!layout.v1.empty() && !point.empty()) own.v1.push_back(point + group);
    }
    return own;
}

} // namespace gantry::cri_native
