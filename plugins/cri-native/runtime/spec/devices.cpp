#include "plugins/cri-native/runtime/spec/devices.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/files.hpp"
#include "base/invalid.hpp"
#include "plugins/cri-native/launch/defaults.hpp"
namespace gantry::cri_native {

namespace {

using launch::device_plan;

bool is_device(mode_t mode) { return S_ISCHR(mode) || S_ISBLK(mode); }

device_plan node_of(const std::string& path, const struct stat& st) {
    device_plan node;
    node.path = path;
    node.type = S_ISBLK(st.st_mode) ? 'b' : 'c';
    node.major = major(st.st_rdev);
    node.minor = minor(st.st_rdev);
    node.mode = st.st_mode & 0777;
    node.uid = st.st_uid;
    node.gid = st.st_gid;
    return node;
}

/// Adds the nodes below host_dir as paths below dir, down to `depth` levels. /dev is shallow; what is deeper is no
/// device tree.
result<void> collect(const std::string& host_dir, const std::string& dir, const std::string& access, int depth,
                     std::vector<found_device>& found) {
    if (depth == 0) return {};
    GANTRY_TRY(const auto names, base::list_dir(host_dir));
    for (const auto& name : names) {
        const bool skip =
            host_dir == "/dev" && (name == "pts" || name == "shm" || name == "mqueue" || name == "console" ||
                                   name == "ptmx" || name == "fd" || name == "hugepages");
        struct stat st {};
        if (skip || ::lstat((host_dir + "/" + name).c_str(), &st) != 0) continue;
        if (is_device(st.st_mode))
            found.push_back({.node = node_of(dir + "/" + name, st), .access = access});
        else if (S_ISDIR(st.st_mode))
            GANTRY_CHECK(collect(host_dir + "/" + name, dir + "/" + name, access, depth - 1, found));
    }
    return {};
}

cgroup::device_rule allow(char type, std::optional<std::uint32_t> major_number,
                          std::optional<std::uint32_t> minor_number, std::string access) {
    return {.allow = true, .type = type, .major = major_number, .minor = minor_number, .access = std::move(access)};
}

} // namespace

result<std::vector<found_device>> find_devices(const runtime::v1::ContainerConfig& config) {
    std::vector<found_device> found;
    for (const auto& request : config.devices()) {
        const std::string path = request.container_path().empty() ? request.host_path() : request.container_path();
        const std::string access = request.permissions().empty() ? "rwm" : request.permissions();
        const std::string name = "device " + request.host_path();
        if (access.find_first_not_of("rwm") != std::string::npos)
            return invalid(name + ": permissions \"" + access + "\" are not of r, w and m");
        if (path.empty() || path.front() != '/') return invalid(name + ": container_path is not absolute");
        struct stat st {};
        if (::stat(request.host_path().c_str(), &st) != 0) return sys_error(name, errno);
        if (is_device(st.st_mode)) {
            found.push_back({.node = node_of(path, st), .access = access});
        } else if (S_ISDIR(st.st_mode)) {
            GANTRY_CHECK(collect(request.host_path(), path, access, 4, found));
        } else {
            return invalid(name + " is neither a device node nor a directory of them");
        }
    }
    return found;
}

result<std::vector<found_device>> all_host_devices() {
    std::vector<found_device> found;
    GANTRY_CHECK(collect("/dev", "/dev", "rwm", 4, found));
    return found;
}

std::vector<cgroup::device_rule> device_rules(bool privileged, const std::vector<found_device>& devices) {
    if (privileged) return {allow('a', std::nullopt, std::nullopt, "rwm")};
    std::vector<cgroup::device_rule> rules;
    rules.push_back({.allow = false, .type = 'a', .major = std::nullopt, .minor = std::nullopt, .access = "rwm"});
    // A node that nobody may open is harmless, and archives that hold some can be unpacked.
    rules.push_back(allow('c', std::nullopt, std::nullopt, "m"));
    rules.push_back(allow('b', std::nullopt, std::nullopt, "m"));
    for (const auto& node : launch::default_devices()) rules.push_back(allow('c', node.major, node.minor, "rwm"));
    rules.push_back(allow('c', 5, 1, "rwm"));              // /dev/console
    rules.push_back(allow('c', 5, 2, "rwm"));              // /dev/ptmx
    rules.push_back(allow('c', 136, std::nullopt, "rwm")); // /dev/pts/N
    for (const auto& device : devices)
        rules.push_back(allow(device.node.type, device.node.major, device.node.minor, device.access));
    return rules;
}

} // namespace gantry::cri_native
