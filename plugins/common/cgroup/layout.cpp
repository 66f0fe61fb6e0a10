#include "plugins/common/cgroup/layout.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/files.hpp"
#include "plugins/common/cgroup/control_file.hpp"

namespace gantry::cgroup {

namespace {

constexpr std::array<std::string_view, 13> controllers_of_v1 = {
    "blkio",  "cpu",  "cpuacct", "cpuset",   "devices",    "freezer", "hugetlb",
    "memory", "misc", "net_cls", "net_prio", "perf_event", "pids"};

/// Undoes the octal escapes of mountinfo (space, tab, newline, backslash).
std::string unescape(std::string_view field) {
    std::string out;
    for (std::size_t i = 0; i < field.size(); ++i) {
        const auto octal = [&](std::size_t k) { return field[i + k] >= '0' && field[i + k] <= '7'; };
        if (field[i] == '\\' && i + 3 < field.size() && octal(1) && octal(2) && octal(3)) {
            out += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0'));
            i += 3;
        } else {
            out += field[i];
        }
    }
    return out;
}

std::vector<std::string> v1_controllers(std::string_view super_options) {
    std::vector<std::string> found;
    for (const auto option : split(super_options, ','))
        if (option.starts_with("name=") ||
            std::find(controllers_of_v1.begin(), controllers_of_v1.end(), option) != controllers_of_v1.end())
            found.emplace_back(option);
    std::sort(found.begin(), found.end());
    return found;
}

bool has(const v1_mount& mount, std::string_view controller) {
    return std::find(mount.controllers.begin(), mount.controllers.end(), controller) != mount.controllers.end();
}

bool is_mounted(const std::string& point, decltype(statfs::f_type) magic) {
    struct statfs fs {};
    return ::statfs(point.c_str(), &fs) == 0 && fs.f_type == magic;
}

} // namespace

std::string layout::mount_of(std::string_view controller) const {
    for (const auto& mount : v1)
        if (has(mount, controller)) return mount.point;
    const bool in_unified =
        std::find(unified_controllers.begin(), unified_controllers.end(), controller) != unified_controllers.end();
    return in_unified ? unified : std::string();
}

layout parse_mountinfo(std::string_view mountinfo) {
    struct seen {
        std::string point;
        bool whole;
    };
    std::map<std::vector<std::string>, seen> hierarchies; // v2 has no controllers in its options: the empty key
    for (const auto line : split(mountinfo, '\n')) {
        // id parent major:minor root point options [tags...] - type source super-options
        const auto fields = split(line, ' ');
        const auto dash = std::find(fields.begin(), fields.end(), "-");
        if (fields.size() < 6 || fields.end() - dash < 4) continue;
        const std::string_view type = dash[1];
        if (type != "cgroup" && type != "cgroup2") continue;
        auto controllers = type == "cgroup2" ? std::vector<std::string>{} : v1_controllers(dash[3]);
        if (type == "cgroup" && controllers.empty()) continue;
        const bool whole = fields[3] == "/";
        const auto [at, first] = hierarchies.try_emplace(std::move(controllers), seen{unescape(fields[4]), whole});
        if (!first && whole && !at->second.whole) at->second = seen{unescape(fields[4]), true};
    }
    layout out;
    for (auto& [controllers, mount] : hierarchies) {
        if (controllers.empty())
            out.unified = mount.point;
        else
            out.v1.push_back({controllers, mount.point});
    }
    // A v2 machine may carry named or network hierarchies of v1; they bound nothing we set.
    const bool resources_in_v1 = std::any_of(
        out.v1.begin(), out.v1.end(), [](const v1_mount& mount) { return has(mount, "memory") || has(mount, "cpu"); });
    if (!resources_in_v1) out.v1.clear();
    return out;
}

result<layout> detect() {
    GANTRY_TRY(const auto text, base::read_file("/proc/self/mountinfo"));
    layout found = parse_mountinfo(text);
    std::erase_if(found.v1, [](const v1_mount& mount) { return !is_mounted(mount.point, CGROUP_SUPER_MAGIC); });
    if (!found.unified.empty() && !is_mounted(found.unified, CGROUP2_SUPER_MAGIC)) found.unified.clear();
    if (found.v1.empty() && found.unified.empty())
        return error{.code = code::unsupported,
                     .message = "no cgroup file system is mounted; mount cgroup2 on /sys/fs/cgroup"};
    if (!found.unified.empty()) {
        GANTRY_TRY(const auto names, read_control(found.unified + "/cgroup.controllers"));
        for (const auto name : split(names, ' ')) found.unified_controllers.emplace_back(name);
    }
    return found;
}

} // namespace gantry::cgroup
