#include "plugins/common/cgroup/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/files.hpp"
#include "plugins/common/cgroup/control_file.hpp"
#include "plugins/common/cgroup/mounts.hpp"
#include "plugins/common/cgroup/unified.hpp"

namespace gantry::cgroup {

namespace {

bool is_directory(const std::string& path) {
    struct stat st {};
    return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

result<void> check_group(const std::string& group) {
    const auto names = split(group, '/');
    std::size_t length = 0;
    for (const auto name : names) {
        length += name.size() + 1;
        if (name == "." || name == ".." || name.size() > 255 || name.find('\n') != std::string_view::npos) length = 0;
        if (length == 0) break;
    }
    if (length > 0 && length == group.size() && group.front() == '/') return {};
    return error{.code = code::invalid,
                 .message = "\"" + group + "\" is no cgroup path; it starts with / and has no empty, . or .. part"};
}

std::string parent_of(const std::string& group) { return group.substr(0, group.rfind('/')); }

/// A new cpuset group takes no process until it has CPUs and memory nodes; they are its parent's.
result<void> inherit_cpuset(const std::string& directory) {
    for (const auto* file : {"/cpuset.cpus", "/cpuset.mems"}) {
        GANTRY_TRY(const auto own, read_control(directory + file));
        if (!own.empty()) continue;
        GANTRY_TRY(const auto above, read_control(parent_of(directory) + file));
        GANTRY_CHECK(write_control(directory + file, above));
    }
    return {};
}

/// mkdir -p below a v1 mount point.
result<void> make_v1(const v1_mount& mount, const std::string& group) {
    if (group.empty()) return {};
    const std::string directory = mount.point + group;
    if (::mkdir(directory.c_str(), 0755) != 0) {
        if (errno == ENOENT) {
            GANTRY_CHECK(make_v1(mount, parent_of(group)));
            if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir " + directory, errno);
        } else if (errno != EEXIST) {
            return sys_error("mkdir " + directory, errno);
        }
    }
    if (std::find(mount.controllers.begin(), mount.controllers.end(), "cpuset") != mount.controllers.end())
        return inherit_cpuset(directory);
    return {};
}

result<void> write_one(const layout& l, const std::string& group, const control_write& write) {
    const std::string mount = l.mount_of(write.controller);
    if (mount.empty()) {
        if (write.optional) return {};
        return error{.code = code::unsupported,
                     .message = "cannot set " + write.file + " of " + group + ": this machine has no " +
                                write.controller + " controller; enable it or drop the limit"};
    }
    auto done = write_control(mount + group + "/" + write.file, write.value);
    const bool missing = !done && (done.error().sys_errno == ENOENT || done.error().sys_errno == EACCES);
    return missing && write.optional ? result<void>{} : done;
}

/// Some values are legal only beside others (v1 memory under memsw, quota against period), whichever was there before:
/// what is refused in the first pass is tried again after the rest.
result<void> write_all(const layout& l, const std::string& group, const std::vector<control_write>& writes) {
    std::vector<const control_write*> again;
    for (const auto& write : writes) {
        auto done = write_one(l, group, write);
        if (done) continue;
        const int e = done.error().sys_errno;
        if (e != EINVAL && e != EBUSY) return done;
        again.push_back(&write);
    }
    for (const auto* write : again) GANTRY_CHECK(write_one(l, group, *write));
    return {};
}

/// v2 would kill to get below a new limit; v1 refuses by itself.
result<void> check_memory_fits(const std::string& directory, const limits& wanted) {
    if (!wanted.memory_max || *wanted.memory_max < 0) return {};
    const std::uint64_t used = read_number(directory + "/memory.current");
    if (used <= static_cast<std::uint64_t>(*wanted.memory_max)) return {};
    return error{.code = code::busy,
                 .message = "memory limit " + std::to_string(*wanted.memory_max) + " of " + directory +
                            " is below its usage " + std::to_string(used),
                 .retryable = true};
}

} // namespace

result<hierarchy> hierarchy::open() {
    GANTRY_TRY(auto found, detect());
    return hierarchy(std::move(found));
}

std::string hierarchy::directory(const std::string& group, std::string_view controller) const {
    if (version() == version::v2) return layout_.unified + group;
    const std::string mount = layout_.mount_of(controller);
    return mount.empty() ? std::string() : mount + group;
}

result<void> hierarchy::create(const std::string& group, const limits& wanted) const {
    GANTRY_CHECK(check_group(group));
    GANTRY_TRY(const auto writes, plan_writes(version(), wanted));
    if (!layout_.unified.empty()) GANTRY_CHECK(make_unified(layout_, group));
    for (const auto& mount : layout_.v1) GANTRY_CHECK(make_v1(mount, group));
    return write_all(layout_, group, writes);
}

result<void> hierarchy::apply(const std::string& group, const limits& wanted) const {
    GANTRY_CHECK(check_group(group));
    if (!exists(group)) return error{.code = code::not_found, .message = "no cgroup " + group};
    if (version() == version::v2) GANTRY_CHECK(check_memory_fits(layout_.unified + group, wanted));
    GANTRY_TRY(const auto writes, plan_writes(version(), wanted));
    return write_all(layout_, group, writes);
}

result<void> hierarchy::set_devices(const std::string& group, const std::vector<device_rule>& rules) const {
    GANTRY_CHECK(check_group(group));
    if (version() == version::v2) {
        const std::string path = layout_.unified + group;
        base::unique_fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!fd) return sys_error("open " + path, errno);
        return attach_device_program(fd.get(), rules);
    }
    const std::string path = directory(group, "devices");
    if (path.empty())
        return error{.code = code::unsupported,
                     .message = "no devices controller; device rules of " + group + " cannot be set"};
    GANTRY_CHECK(write_control(path + "/devices.deny", "a"));
    for (const auto& rule : rules)
        GANTRY_CHECK(write_control(path + (rule.allow ? "/devices.allow" : "/devices.deny"), v1_device_line(rule)));
    return {};
}

result<entrance> hierarchy::open_entrance(const std::string& group) const {
    GANTRY_CHECK(check_group(group));
    entrance out;
    if (!layout_.unified.empty()) {
        const std::string path = layout_.unified + group;
        out.unified.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!out.unified) return sys_error("open " + path, errno);
    }
    for (const auto& mount : layout_.v1) {
        const std::string path = mount.point + group + "/tasks";
        base::unique_fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        if (!fd) return sys_error("open " + path, errno);
        out.tasks.push_back(std::move(fd));
    }
    return out;
}

result<void> hierarchy::attach(const std::string& group, pid_t pid) const {
    GANTRY_CHECK(check_group(group));
    for (const auto& directory : directories(layout_, group))
        GANTRY_CHECK(write_control(directory + "/cgroup.procs", std::to_string(pid)));
    return {};
}

bool hierarchy::exists(const std::string& group) const {
    const auto all = directories(layout_, group);
    return std::any_of(all.begin(), all.end(), is_directory);
}

result<std::vector<std::string>> hierarchy::children(const std::string& group) const {
    std::vector<std::string> names;
    for (const auto& directory : directories(layout_, group)) {
        GANTRY_TRY(const auto found, subgroups(directory));
        names.insert(names.end(), found.begin(), found.end());
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

} // namespace gantry::cgroup
