// What containers use.
#include <fcntl.h>
#include <sys/stat.h>

#include "base/files.hpp"
#include "base/unique_fd.hpp"
#include "plugins/cri-native/runtime/clock.hpp"
#include "plugins/cri-native/runtime/describe.hpp"
#include "plugins/cri-native/runtime/engine.hpp"
#include "plugins/cri-native/runtime/rootfs/disk_usage.hpp"

namespace gantry::cri_native {

namespace {

void fill(cri::ContainerStats& stats, const cgroup::usage& usage, std::int64_t now, std::int64_t memory_limit) {
    auto* cpu = stats.mutable_cpu();
    cpu->set_timestamp(now);
    cpu->mutable_usage_core_nano_seconds()->set_value(usage.cpu_ns);
    auto* memory = stats.mutable_memory();
    memory->set_timestamp(now);
    memory->mutable_working_set_bytes()->set_value(usage.working_set);
    memory->mutable_usage_bytes()->set_value(usage.memory);
    memory->mutable_rss_bytes()->set_value(usage.rss);
    memory->mutable_page_faults()->set_value(usage.page_faults);
    memory->mutable_major_page_faults()->set_value(usage.major_page_faults);
    if (memory_limit > 0) {
        const auto limit = static_cast<std::uint64_t>(memory_limit);
        memory->mutable_available_bytes()->set_value(limit > usage.working_set ? limit - usage.working_set : 0);
    }
    auto* swap = stats.mutable_swap();
    swap->set_timestamp(now);
    swap->mutable_swap_usage_bytes()->set_value(usage.swap);
}

void fill(cri::FilesystemUsage& layer, const disk_usage& usage, std::int64_t now, const std::string& mountpoint) {
    layer.set_timestamp(now);
    layer.mutable_fs_id()->set_mountpoint(mountpoint);
    layer.mutable_used_bytes()->set_value(usage.bytes);
    layer.mutable_inodes_used()->set_value(usage.inodes);
}

} // namespace

op_task<std::vector<cri::ContainerStats>> engine::measure(std::vector<container_ptr> which) {
    auto measured = co_await host_.work([&]() -> result<std::vector<cri::ContainerStats>> {
        std::vector<cri::ContainerStats> all;
        all.reserve(which.size());
        for (const auto& one : which) {
            const auto usage = cgroups_->usage(one->cgroup);
            if (!usage && usage.error().code != code::not_found) return usage.error();
            const auto now = unix_now();
            cri::ContainerStats stats;
            // One that was removed meanwhile has nothing to show; an ended one still has its layer.
            if (usage) fill(stats, *usage, now, one->record.config().linux().resources().memory_limit_in_bytes());
            const auto layer = layer_usage_.of(writable_dir(one->record.id()) + "/upper");
            fill(*stats.mutable_writable_layer(), layer, now, containers_dir_);
            all.push_back(std::move(stats));
        }
        return all;
    });
    if (!measured) co_return measured.error();
    for (std::size_t i = 0; i < which.size(); ++i) *(*measured)[i].mutable_attributes() = attributes_of(*which[i]);
    co_return *std::move(measured);
}

op_task<cri::ContainerStatsResponse> engine::container_stats(cri::ContainerStatsRequest request, sdk::op) {
    const auto one = find_container(request.container_id());
    if (!one)
        co_return error{.code = code::not_found, .message = "container " + request.container_id() + " does not exist"};
    std::vector<container_ptr> which(1, one);
    GANTRY_CO_TRY(auto measured, co_await measure(std::move(which)));
    cri::ContainerStatsResponse response;
    *response.mutable_stats() = std::move(measured.front());
    co_return response;
}

op_task<cri::ListContainerStatsResponse> engine::list_container_stats(cri::ListContainerStatsRequest request, sdk::op) {
    std::vector<container_ptr> which;
    for (const auto& [id, one] : containers_)
        if (one->state == phase::running && matches(request.filter(), *one)) which.push_back(one);
    GANTRY_CO_TRY(auto measured, co_await measure(std::move(which)));
    cri::ListContainerStatsResponse response;
    for (auto& stats : measured) *response.add_stats() = std::move(stats);
    co_return response;
}

} // namespace gantry::cri_native
