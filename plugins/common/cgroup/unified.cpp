#include "plugins/common/cgroup/unified.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/unique_fd.hpp"
#include "plugins/common/cgroup/control_file.hpp"
#include "plugins/common/cgroup/deadline.hpp"

namespace gantry::cgroup {

namespace {

struct wanted_controller {
    std::string_view name;
    bool needed; ///< pods cannot be bounded without it
};
constexpr wanted_controller wanted[] = {{"cpu", true},     {"memory", true}, {"pids", true},
                                        {"cpuset", false}, {"io", false},    {"hugetlb", false}};

bool lists(const std::string& names, std::string_view name) {
    const auto words = split(names, ' ');
    return std::find(words.begin(), words.end(), name) != words.end();
}

/// In the root of a cgroup namespace (or of a delegated subtree) no process may stay beside enabled controllers. The
/// real root, which has no cgroup.type, is exempt.
result<bool> empty_namespace_root(const std::string& root) {
    if (::access((root + "/cgroup.type").c_str(), F_OK) != 0) return false;
    const std::string leaf = root + "/gantry-self";
    if (::mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir " + leaf, errno);
    GANTRY_TRY(const auto processes, read_control(root + "/cgroup.procs"));
    for (const auto pid : split(processes, '\n')) {
        auto moved = write_control(leaf + "/cgroup.procs", pid);
        if (!moved && moved.error().sys_errno != ESRCH) return std::move(moved).error();
    }
    return !processes.empty();
}

result<void> enable(const std::string& directory, std::string_view controllers) {
    return write_control(directory + "/cgroup.subtree_control", controllers);
}

/// Enables in `directory` what it has of the wanted controllers.
result<void> enable_controllers(const std::string& directory, bool is_root) {
    GANTRY_TRY(const auto available, read_control(directory + "/cgroup.controllers"));
    GANTRY_TRY(const auto enabled, read_control(directory + "/cgroup.subtree_control"));
    std::string missing;
    for (const auto& [name, needed] : wanted)
        if (lists(available, name) && !lists(enabled, name))
            missing += (missing.empty() ? "+" : " +") + std::string(name);
    if (missing.empty()) return {};
    auto done = enable(directory, missing);
    for (int attempt = 0; !done && done.error().sys_errno == EBUSY && is_root && attempt < 10; ++attempt) {
        GANTRY_TRY(const bool moved, empty_namespace_root(directory));
        if (!moved) break;
        done = enable(directory, missing);
    }
    if (done) return {};
    for (const auto name : split(missing, ' ')) { // one that cannot be had must not cost the others
        auto one = enable(directory, name);
        const bool needed = std::any_of(std::begin(wanted), std::end(wanted),
                                        [&](const auto& w) { return w.needed && w.name == name.substr(1); });
        if (!one && needed) return one;
    }
    return {};
}

result<void> make_below(const std::string& root, const std::string& group) {
    const std::string directory = root + group;
    if (group.empty() || ::mkdir(directory.c_str(), 0755) == 0 || errno == EEXIST) return {};
    if (errno != ENOENT) return sys_error("mkdir " + directory, errno);
    GANTRY_CHECK(make_below(root, group.substr(0, group.rfind('/'))));
    if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir " + directory, errno);
    return {};
}

/// True when children of the directory have every wanted controller that the machine has.
bool is_enabled(const layout& l, const std::string& directory) {
    const auto enabled = read_control(directory + "/cgroup.subtree_control");
    return enabled && std::all_of(std::begin(wanted), std::end(wanted), [&](const auto& w) {
               const auto& all = l.unified_controllers;
               return std::find(all.begin(), all.end(), w.name) == all.end() || lists(*enabled, w.name);
           });
}

/// Controllers are had from above only: from the root down to the group's parent.
result<void> enable_down_to(const layout& l, const std::string& parent) {
    if (is_enabled(l, l.unified + parent)) return {};
    GANTRY_CHECK(enable_controllers(l.unified, true));
    for (std::size_t end = parent.find('/', 1); !parent.empty(); end = parent.find('/', end + 1)) {
        GANTRY_CHECK(enable_controllers(l.unified + parent.substr(0, end), false));
        if (end == std::string::npos) break;
    }
    return {};
}

} // namespace

result<void> make_unified(const layout& l, const std::string& group) {
    if (l.version() == version::v1) return make_below(l.unified, group); // hybrid: the controllers are elsewhere
    // The parent's controllers come first: subtree_control names what somebody else enables right now before the files
    // are in the groups that were there already; a mkdir waits for them.
    const auto parent = group.substr(0, group.rfind('/'));
    GANTRY_CHECK(make_below(l.unified, parent));
    GANTRY_CHECK(enable_down_to(l, parent));
    return make_below(l.unified, group);
}

result<bool> wait_event(const std::string& directory, const std::string& key, std::uint64_t value,
                        std::chrono::steady_clock::time_point deadline) {
    const std::string path = directory + "/cgroup.events";
    base::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return errno == ENOENT ? result<bool>(true) : sys_error("open " + path, errno);
    for (;;) {
        char text[256];
        const ssize_t n = ::pread(fd.get(), text, sizeof text, 0);
        if (n < 0 && errno == ENODEV) return true;
        if (n < 0) return sys_error("read " + path, errno);
        if (number_of(std::string_view(text, static_cast<std::size_t>(n)), key) == value) return true;
        pollfd changed{fd.get(), POLLPRI, 0};
        const int ready = ::poll(&changed, 1, milliseconds_until(deadline));
        if (ready == 0) return false;
        if (ready < 0 && errno != EINTR) return sys_error("poll " + path, errno);
    }
}

} // namespace gantry::cgroup
