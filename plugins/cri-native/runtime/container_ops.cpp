// Containers: made, started, stopped, removed.
#include <csignal>

#include "base/files.hpp"
#include "plugins/cri-native/runtime/canonical.hpp"
#include "plugins/cri-native/runtime/clock.hpp"
#include "plugins/cri-native/runtime/describe.hpp"
#include "plugins/cri-native/runtime/engine.hpp"
#include "plugins/cri-native/runtime/spec/limits.hpp"
#include "plugins/cri-native/runtime/spec/process.hpp"

namespace gantry::cri_native {

namespace {

error missing(const std::string& id) {
    return {.code = code::not_found, .message = "container " + id + " does not exist"};
}

std::string label(const container& one) {
    return "container " + one.record.config().metadata().name() + " (" + one.record.id() + ")";
}

} // namespace

op_task<cri::CreateContainerResponse> engine::create_container(cri::CreateContainerRequest request, sdk::op op) {
    const auto pod = find_sandbox(request.pod_sandbox_id());
    if (!pod)
        co_return error{.code = code::not_found, .message = "sandbox " + request.pod_sandbox_id() + " does not exist"};
    const auto lock = co_await pod->changing.lock(host_);
    if (!pod->ready())
        co_return error{.code = code::unavailable,
                        .message = "sandbox " + pod->record.id() + " is not ready; make a new one"};
    const auto& metadata = request.config().metadata();
    if (metadata.name().empty()) co_return error{.code = code::invalid, .message = "config.metadata needs a name"};
    for (const auto& [id, present] : pod->containers) {
        const auto& theirs = present->record.config();
        if (theirs.metadata().name() != metadata.name() || theirs.metadata().attempt() != metadata.attempt()) continue;
        if (present->state == phase::created && canonical(theirs) == canonical(request.config())) {
            cri::CreateContainerResponse response;
            response.set_container_id(id);
            co_return response;
        }
        co_return error{.code = code::exists,
                        .message = label(*present) + " exists with attempt " + std::to_string(metadata.attempt()) +
                                   "; remove it or raise the attempt"};
    }
    GANTRY_CO_TRY(auto image, images_->resolve(request.config().image().image()));

    const auto one = std::make_shared<container>();
    one->pod = pod;
    auto& record = one->record;
    record.set_id(store::new_id());
    record.set_sandbox_id(pod->record.id());
    *record.mutable_config() = std::move(*request.mutable_config());
    record.set_created_ns(unix_now());
    record.set_image_id(image.id);
    record.set_image_ref(image.repo_digests.empty() ? image.id : image.repo_digests.front());
    record.set_stop_signal(stop_signal_of(record.config(), image.config));
    if (!record.config().log_path().empty() && !pod->record.config().log_directory().empty())
        record.set_log_path(pod->record.config().log_directory() + "/" + record.config().log_path());
    one->cgroup = pod->record.cgroup_parent() + "/" + record.id();

    auto built = co_await build(one, pod, image);
    if (built && op.cancelled()) built = op.cancelled_error();
    if (!built) {
        const auto undone = co_await destroy(one);
        if (!undone) {
            host_.warn(undone.error().message);
            pod->containers.emplace(record.id(), one); // removed with its pod, or when asked to
            containers_.emplace(record.id(), one);
        }
        co_return built.error();
    }
    publish(*one, cri::CONTAINER_CREATED_EVENT);
    cri::CreateContainerResponse response;
    response.set_container_id(record.id());
    co_return response;
}

op_task<void> engine::build(container_ptr one, sandbox_ptr pod, const images::image& image) {
    GANTRY_CO_CHECK(images_->pin(image.id, one->record.id()));
    auto plan = co_await host_.work([&] { return prepare(*one, *pod, image); });
    if (!plan) co_return plan.error();
    if (!pod->supervisor)
        co_return error{.code = code::unavailable,
                        .message = "the supervisor of sandbox " + pod->record.id() + " died"};
    pod->containers.emplace(one->record.id(), one);
    containers_.emplace(one->record.id(), one);
    one->own_pid_namespace = plan->pid == launch::pid_mode::container;
    if (const auto fits = check_exec_size(plan->process.argv, plan->process.env, stack_limit_); !fits)
        one->refusal = fits.error().message;
    const auto created = co_await outcome_of<pid_t>(
        host_, [&](launch::callback<pid_t> done) { pod->supervisor->create(*plan, std::move(done)); });
    if (!created) {
        pod->containers.erase(one->record.id()); // its supervisor knows nothing of it
        containers_.erase(one->record.id());
        co_return created.error();
    }
    one->pid = *created;
    co_return result<void>{};
}

op_task<cri::StartContainerResponse> engine::start_container(cri::StartContainerRequest request, sdk::op) {
    const auto one = find_container(request.container_id());
    if (!one) co_return missing(request.container_id());
    const auto lock = co_await one->starting.lock(host_);
    const auto pod = one->pod.lock();
    if (one->state != phase::created || one->removed || !pod)
        co_return error{.code = code::invalid,
                        .message = label(*one) + " is not waiting to be started; create another one"};
    if (!pod->supervisor)
        co_return error{.code = code::unavailable, .message = "the supervisor of " + label(*one) + " is gone"};
    if (!one->refusal.empty()) {
        mark_ended(one, 128, "StartError", one->refusal);
        co_return error{.code = code::invalid, .message = label(*one) + ": " + one->refusal};
    }
    const auto started = co_await outcome_of<void>(
        host_, [&](launch::callback<void> done) { pod->supervisor->start(one->record.id(), std::move(done)); });
    if (!started) {
        mark_ended(one, 128, "StartError", started.error().message);
        co_return started.error();
    }
    // Its exit may have been reported before this coroutine went on.
    if (one->state == phase::created) {
        one->state = phase::running;
        one->started_ns = unix_now();
    }
    publish(*one, cri::CONTAINER_STARTED_EVENT);
    co_return cri::StartContainerResponse{};
}

op_task<cri::StopContainerResponse> engine::stop_container(cri::StopContainerRequest request, sdk::op op) {
    const auto one = find_container(request.container_id());
    if (!one || one->state == phase::exited) co_return cri::StopContainerResponse{};
    const auto pod = one->pod.lock();
    if (one->state == phase::running && request.timeout() > 0 && pod && pod->supervisor) {
        pod->supervisor->signal(one->record.id(), one->record.stop_signal(), [](const result<void>&) {});
        const auto patience = std::chrono::seconds(std::min<std::int64_t>(request.timeout(), 1 << 30));
        const auto ended = co_await one->exited.wait(host_, patience);
        if (ended && *ended) co_return cri::StopContainerResponse{};
        // Whoever gave up may have come back with more patience.
        if (op.cancelled()) co_return op.cancelled_error();
    }
    GANTRY_CO_CHECK(co_await kill(one));
    co_return cri::StopContainerResponse{};
}

op_task<void> engine::kill(container_ptr one) {
    if (one->state == phase::exited) co_return result<void>{};
    const auto pod = one->pod.lock();
    if (pod && pod->supervisor) {
        pod->supervisor->signal(one->record.id(), SIGKILL, [](const result<void>&) {});
        const auto ended = co_await one->exited.wait(host_, kill_timeout);
        if (ended && *ended) co_return result<void>{};
    }
    const auto deadline = std::chrono::steady_clock::now() + kill_timeout;
    const auto killed = co_await host_.work([&]() -> result<void> {
        GANTRY_CHECK(cgroups_->kill_all(one->cgroup, deadline));
        return cgroups_->wait_empty(one->cgroup, deadline);
    });
    if (!killed) co_return killed.error();
    if (pod && pod->supervisor) {
        const auto ended = co_await one->exited.wait(host_, kill_timeout);
        if (ended && *ended) co_return result<void>{};
    }
    if (pod && pod->lost) co_await settle_lost(pod); // whoever heard of it asks us to stop before we have settled it
    if (one->state != phase::exited) mark_ended(one, 128 + SIGKILL, "Error", "");
    co_return result<void>{};
}

op_task<cri::RemoveContainerResponse> engine::remove_container(cri::RemoveContainerRequest request, sdk::op) {
    if (const auto one = find_container(request.container_id())) GANTRY_CO_CHECK(co_await destroy(one));
    co_return cri::RemoveContainerResponse{};
}

op_task<void> engine::destroy(container_ptr one) {
    const auto lock = co_await one->starting.lock(host_);
    if (one->removed) co_return result<void>{};
    const std::string id = one->record.id();
    const bool known = containers_.count(id) != 0;
    if (known) GANTRY_CO_CHECK(co_await kill(one));
    const auto pod = one->pod.lock();
    if (known && pod && pod->supervisor) {
        const auto forgotten = co_await outcome_of<void>(
            host_, [&](launch::callback<void> done) { pod->supervisor->forget(id, std::move(done)); });
        const bool gone =
            forgotten || forgotten.error().code == code::not_found || forgotten.error().code == code::unavailable;
        if (!gone) co_return forgotten.error();
    }
    const auto freed = co_await host_.work([&]() -> result<void> {
        const auto deadline = std::chrono::steady_clock::now() + kill_timeout;
        GANTRY_CHECK(cgroups_->kill_all(one->cgroup, deadline)); // what outlived the first process
        GANTRY_CHECK(cgroups_->remove(one->cgroup, deadline));
        GANTRY_CHECK(base::remove_tree(writable_dir(id)));
        return records_.erase_container(one->record.sandbox_id(), id);
    });
    if (!freed) co_return freed.error();
    images_->unpin(one->record.image_id(), id);
    layer_usage_.forget(writable_dir(id) + "/upper");
    one->removed = true;
    containers_.erase(id);
    if (pod) pod->containers.erase(id);
    if (known) publish(*one, cri::CONTAINER_DELETED_EVENT);
    co_return result<void>{};
}

op_task<cri::ListContainersResponse> engine::list_containers(cri::ListContainersRequest request, sdk::op) {
    cri::ListContainersResponse response;
    for (const auto& [id, one] : containers_)
        if (matches(request.filter(), *one)) *response.add_containers() = summary_of(*one);
    co_return response;
}

op_task<cri::ContainerStatusResponse> engine::container_status(cri::ContainerStatusRequest request, sdk::op) {
    const auto one = find_container(request.container_id());
    if (!one) co_return missing(request.container_id());
    cri::ContainerStatusResponse response;
    *response.mutable_status() = status_of(*one);
    if (request.verbose()) (*response.mutable_info())["info"] = verbose_info(*one);
    co_return response;
}

op_task<cri::UpdateContainerResourcesResponse>
engine::update_container_resources(cri::UpdateContainerResourcesRequest request, sdk::op) {
    const auto one = find_container(request.container_id());
    if (!one) co_return missing(request.container_id());
    if (one->state == phase::exited)
        co_return error{.code = code::invalid, .message = label(*one) + " has ended; its resources cannot change"};
    GANTRY_CO_TRY(const auto limits, cgroup_limits(request.linux()));
    const auto applied = co_await host_.work([&] { return cgroups_->apply(one->cgroup, limits); });
    if (!applied) co_return applied.error();
    auto* present = one->record.mutable_config()->mutable_linux()->mutable_resources();
    *present = merged_resources(*present, request.linux());
    GANTRY_CO_CHECK(records_.put(one->record));
    co_return cri::UpdateContainerResourcesResponse{};
}

op_task<cri::ReopenContainerLogResponse> engine::reopen_container_log(cri::ReopenContainerLogRequest request, sdk::op) {
    GANTRY_CO_TRY(const auto one, running_container(request.container_id()));
    const auto pod = one->pod.lock();
    const auto reopened = co_await outcome_of<void>(
        host_, [&](launch::callback<void> done) { pod->supervisor->reopen_log(one->record.id(), std::move(done)); });
    if (!reopened) co_return reopened.error();
    co_return cri::ReopenContainerLogResponse{};
}

} // namespace gantry::cri_native
