#include "core/host/op_names.hpp"

#include <iterator>

#include "gantry/abi/draft/image.h"
#include "gantry/abi/draft/image_gc.h"
#include "gantry/abi/draft/network.h"
#include "gantry/abi/draft/pod_source.h"
#include "gantry/abi/draft/resources.h"
#include "gantry/abi/draft/runtime.h"

namespace gantry::core {

namespace {

struct entry {
    std::string_view capability, op;
    std::size_t offset;
};

#define GANTRY_ENTRY(id, table, member) {id, #member, offsetof(table, member)}
constexpr entry entries[] = {
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, version),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, run_pod_sandbox),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, stop_pod_sandbox),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, remove_pod_sandbox),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, pod_sandbox_status),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, list_pod_sandbox),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, create_container),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, start_container),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, stop_container),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, remove_container),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, list_containers),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, container_status),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, update_container_resources),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, reopen_container_log),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, exec_sync),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, exec_stream),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, attach_stream),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, port_forward),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, container_stats),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, list_container_stats),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, status),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, get_container_events),
    GANTRY_ENTRY(GANTRY_RUNTIME, gantry_runtime, update_runtime_config),
    GANTRY_ENTRY(GANTRY_IMAGE, gantry_image, list_images),
    GANTRY_ENTRY(GANTRY_IMAGE, gantry_image, image_status),
    GANTRY_ENTRY(GANTRY_IMAGE, gantry_image, pull_image),
    GANTRY_ENTRY(GANTRY_IMAGE, gantry_image, remove_image),
    GANTRY_ENTRY(GANTRY_IMAGE, gantry_image, image_fs_info),
    GANTRY_ENTRY(GANTRY_IMAGE, gantry_image, load),
    GANTRY_ENTRY(GANTRY_NETWORK, gantry_network, add),
    GANTRY_ENTRY(GANTRY_NETWORK, gantry_network, del),
    GANTRY_ENTRY(GANTRY_NETWORK, gantry_network, check),
    GANTRY_ENTRY(GANTRY_NETWORK, gantry_network, status),
    GANTRY_ENTRY(GANTRY_NETWORK, gantry_network, gc),
    GANTRY_ENTRY(GANTRY_RESOURCES, gantry_resources, ensure_pod),
    GANTRY_ENTRY(GANTRY_RESOURCES, gantry_resources, remove_pod),
    GANTRY_ENTRY(GANTRY_RESOURCES, gantry_resources, list_pods),
    GANTRY_ENTRY(GANTRY_RESOURCES, gantry_resources, capacity),
    GANTRY_ENTRY(GANTRY_RESOURCES, gantry_resources, stats),
    GANTRY_ENTRY(GANTRY_POD_SOURCE, gantry_pod_source, watch),
    GANTRY_ENTRY(GANTRY_IMAGE_GC, gantry_image_gc, rank),
};
#undef GANTRY_ENTRY

} // namespace

std::optional<std::size_t> offset_of_op(std::string_view capability, std::string_view op) noexcept {
    for (const auto& entry : entries)
        if (entry.capability == capability && entry.op == op) return entry.offset;
    return std::nullopt;
}

} // namespace gantry::core
