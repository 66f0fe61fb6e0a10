#include "plugins/common/cgroup/mounts.hpp"

#include <dirent.h>

#include <algorithm>
#include <memory>

#include "plugins/common/cgroup/control_file.hpp"

namespace gantry::cgroup {

std::vector<std::string> directories(const layout& l, const std::string& group) {
    std::vector<std::string> out;
    if (!l.unified.empty()) out.push_back(l.unified + group);
    for (const auto& mount : l.v1) out.push_back(mount.point + group);
    return out;
}

result<std::vector<std::string>> subgroups(const std::string& directory) {
    struct closer {
        void operator()(DIR* dir) const noexcept { ::closedir(dir); }
    };
    const std::unique_ptr<DIR, closer> dir(::opendir(directory.c_str()));
    std::vector<std::string> names;
    if (!dir) return errno == ENOENT ? result<std::vector<std::string>>(names) : sys_error("open " + directory, errno);
    while (const dirent* entry = ::readdir(dir.get())) {
        const std::string_view name = entry->d_name;
        if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

result<void> collect_processes(const std::string& directory, std::vector<pid_t>& out) {
    const auto text = read_control(directory + "/cgroup.procs");
    if (!text) {
        const int e = text.error().sys_errno;
        // ENODEV: removed while open. EOPNOTSUPP: a threaded group, whose processes are listed above it.
        if (e == ENOENT || e == ENODEV) return {};
        if (e != EOPNOTSUPP) return text.error();
    } else {
        for (const auto line : split(*text, '\n')) out.push_back(static_cast<pid_t>(to_number(line)));
    }
    GANTRY_TRY(const auto names, subgroups(directory));
    for (const auto& name : names) GANTRY_CHECK(collect_processes(directory + "/" + name, out));
    return {};
}

} // namespace gantry::cgroup
