#include "plugins/cri-native/runtime/spec/mounts.hpp"

#include <algorithm>

#include "base/invalid.hpp"
#include "plugins/cri-native/launch/defaults.hpp"
namespace gantry::cri_native {

namespace {

using launch::mount_kind;
using launch::mount_plan;
using launch::mount_propagation;

mount_plan bind(std::string source, std::string target) {
    mount_plan mount;
    mount.source = std::move(source);
    mount.target = std::move(target);
    return mount;
}

std::vector<mount_plan> base_mounts(const mount_facts& facts) {
    std::vector<mount_plan> mounts = launch::default_mounts(facts.privileged);
    for (auto& mount : mounts)
        if (facts.host_ipc && mount.kind == mount_kind::shm) mount = bind("/dev/shm", "/dev/shm");
    for (const char* name : {"hosts", "hostname", "resolv.conf"}) {
        auto file = bind(facts.etc_dir + "/" + name, std::string("/etc/") + name);
        file.readonly = facts.readonly_rootfs;
        mounts.push_back(std::move(file));
    }
    return mounts;
}

result<mount_plan> requested_mount(const runtime::v1::Mount& request) {
    mount_plan mount = bind(request.host_path(), clean_path(request.container_path()));
    const std::string name = "mount of " + request.host_path() + " at " + request.container_path();
    if (request.container_path().empty()) return invalid(name + ": container_path is empty");
    if (mount.target == "/") return invalid(name + ": the root itself cannot be a mount; choose a path below it");
    if (request.host_path().empty() || request.host_path().front() != '/')
        return invalid(name + ": host_path is not absolute");
    if (request.uidmappings_size() != 0 || request.gidmappings_size() != 0)
        return error{.code = code::unsupported,
                     .message = name + ": id-mapped mounts need user namespaces, which cri-native lacks"};
    mount.readonly = request.readonly();
    mount.recursive_readonly = request.recursive_read_only();
    switch (request.propagation()) {
    case runtime::v1::PROPAGATION_PRIVATE: mount.propagation = mount_propagation::rprivate; break;
    case runtime::v1::PROPAGATION_HOST_TO_CONTAINER: mount.propagation = mount_propagation::rslave; break;
    case runtime::v1::PROPAGATION_BIDIRECTIONAL: mount.propagation = mount_propagation::rshared; break;
    default: return invalid(name + ": unknown propagation " + std::to_string(request.propagation()));
    }
    if (mount.recursive_readonly && !mount.readonly)
        return invalid("RROUnsupported: " + name + ": recursive_read_only needs readonly");
    if (mount.recursive_readonly && mount.propagation != mount_propagation::rprivate)
        return invalid("RROUnsupported: " + name + ": recursive_read_only needs private propagation");
    return mount;
}

} // namespace

std::string clean_path(const std::string& path) {
    std::vector<std::string_view> parts;
    std::string_view rest = path;
    while (!rest.empty()) {
        const auto slash = std::min(rest.find('/'), rest.size());
        const auto part = rest.substr(0, slash);
        rest.remove_prefix(std::min(slash + 1, rest.size()));
        if (part == "..") {
            if (!parts.empty()) parts.pop_back();
        } else if (!part.empty() && part != ".") {
            parts.push_back(part);
        }
    }
    std::string clean;
    for (const auto part : parts) (clean += '/') += part;
    return clean.empty() ? "/" : clean;
}

result<std::vector<mount_plan>> container_mounts(const runtime::v1::ContainerConfig& config, const mount_facts& facts) {
    std::vector<mount_plan> mounts = base_mounts(facts);
    std::vector<mount_plan> requested;
    for (const auto& request : config.mounts()) {
        GANTRY_TRY(auto mount, requested_mount(request));
        requested.push_back(std::move(mount));
    }
    std::erase_if(mounts, [&](const mount_plan& ours) {
        return std::any_of(config.mounts().begin(), config.mounts().end(), [&](const runtime::v1::Mount& theirs) {
            return clean_path(theirs.container_path()) == ours.target;
        });
    });
    mounts.insert(mounts.end(), std::make_move_iterator(requested.begin()), std::make_move_iterator(requested.end()));
    return mounts;
}

} // namespace gantry::cri_native
