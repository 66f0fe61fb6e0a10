// Freezing, killing and removing groups.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.hpp"
#include "plugins/common/cgroup/cgroup.hpp"
#include "plugins/common/cgroup/control_file.hpp"
#include "plugins/common/cgroup/deadline.hpp"
#include "plugins/common/cgroup/mounts.hpp"
#include "plugins/common/cgroup/unified.hpp"

namespace gantry::cgroup {

namespace {

bool is_gone(const error& e) { return e.sys_errno == ENOENT || e.sys_errno == ENODEV; }

error past_deadline(const std::string& what) {
    return {.code = code::timeout, .message = what + " past the deadline", .retryable = true};
}

/// Undoes a freeze in the directory and, as each group can be frozen by itself, in all below.
result<void> thaw_tree(const std::string& directory, const char* file, const char* value) {
    auto done = write_control(directory + file, value);
    if (!done) return is_gone(done.error()) ? result<void>{} : done;
    GANTRY_TRY(const auto names, subgroups(directory));
    for (const auto& name : names) GANTRY_CHECK(thaw_tree(directory + "/" + name, file, value));
    return {};
}

result<void> thaw_v1(const std::string& directory) { return thaw_tree(directory, "/freezer.state", "THAWED"); }

result<void> freeze_v1(const std::string& directory, time_point deadline) {
    pace waiting(deadline);
    do { // writing again retries tasks that were between two states
        GANTRY_CHECK(write_control(directory + "/freezer.state", "FROZEN"));
        GANTRY_TRY(const auto state, read_control(directory + "/freezer.state"));
        if (state == "FROZEN") return {};
    } while (waiting.wait());
    GANTRY_CHECK(thaw_v1(directory));
    return past_deadline(directory + " did not freeze (a process in uninterruptible sleep?)");
}

result<void> freeze_v2(const std::string& directory, time_point deadline) {
    GANTRY_CHECK(write_control(directory + "/cgroup.freeze", "1"));
    auto frozen = wait_event(directory, "frozen", 1, deadline);
    if (frozen && *frozen) return {};
    GANTRY_CHECK(thaw_tree(directory, "/cgroup.freeze", "0"));
    return frozen ? past_deadline(directory + " did not freeze") : std::move(frozen).error();
}

/// Signals the process if it still is in the directory's tree: a pidfd holds on to it while that is looked up. A frozen
/// process cannot have left it.
result<void> kill_member(const std::string& directory, pid_t pid, bool frozen) {
    if (pid == 0)
        return error{.code = code::permission,
                     .message =
                         directory + " holds a process of another PID namespace, which cannot be signalled from here"};
    if (frozen)
        return ::kill(pid, SIGKILL) == 0 || errno == ESRCH ? result<void>{}
                                                           : sys_error("kill a process of " + directory, errno);
    const base::unique_fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd) return errno == ESRCH ? result<void>{} : sys_error("pidfd_open " + std::to_string(pid), errno);
    std::vector<pid_t> members;
    GANTRY_CHECK(collect_processes(directory, members));
    if (std::find(members.begin(), members.end(), pid) == members.end()) return {};
    if (::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) != 0 && errno != ESRCH)
        return sys_error("kill process " + std::to_string(pid) + " of " + directory, errno);
    return {};
}

/// Rounds of SIGKILL until a round finds nobody new; for what forks faster than that, freeze first.
result<void> kill_members(const std::string& directory, bool frozen, time_point deadline) {
    std::vector<pid_t> killed;
    do {
        std::vector<pid_t> members;
        GANTRY_CHECK(collect_processes(directory, members));
        std::sort(members.begin(), members.end());
        std::vector<pid_t> fresh;
        std::set_difference(members.begin(), members.end(), killed.begin(), killed.end(), std::back_inserter(fresh));
        if (fresh.empty()) return {};
        for (const pid_t pid : fresh) GANTRY_CHECK(kill_member(directory, pid, frozen));
        killed = std::move(members);
    } while (std::chrono::steady_clock::now() < deadline);
    return past_deadline(directory + " makes processes faster than they can be killed");
}

/// Frozen processes cannot fork or leave while they get their signal; it reaches them when they thaw.
result<void> kill_v1(const std::string& directory, bool freezable, time_point deadline) {
    const auto now = std::chrono::steady_clock::now();
    const bool frozen = freezable && freeze_v1(directory, now + (deadline - now) / 2).ok();
    auto killed = kill_members(directory, frozen, deadline);
    if (freezable) GANTRY_CHECK(thaw_v1(directory));
    return killed;
}

/// Dying takes CPU time, which a small quota gives in drops: what is about to be killed gets as much as it can use.
void lift_quota(const std::string& directory, const char* file, const char* value) {
    if (!write_control(directory + file, value)) return; // gone, or without the controller
    const auto names = subgroups(directory);
    if (!names) return;
    for (const auto& name : *names) lift_quota(directory + "/" + name, file, value);
}

/// cgroup.kill (5.14) takes forks in flight along; false where the kernel lacks it.
result<bool> kill_v2(const std::string& directory) {
    auto done = write_control(directory + "/cgroup.kill", "1");
    if (done) return true;
    if (done.error().sys_errno == ENOENT && ::access(directory.c_str(), F_OK) == 0) return false;
    return is_gone(done.error()) ? result<bool>(true) : std::move(done).error();
}

/// Waits for processes of a v1 tree, which tells nobody that it is empty, by their pidfds.
result<void> wait_for_exit(const std::string& directory, time_point deadline) {
    pace waiting(deadline);
    for (;;) {
        std::vector<pid_t> members;
        GANTRY_CHECK(collect_processes(directory, members));
        if (members.empty()) return {};
        const base::unique_fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, members.front(), 0)));
        pollfd exit{pidfd.get(), POLLIN, 0};
        if (pidfd && ::poll(&exit, 1, milliseconds_until(deadline)) < 0 && errno != EINTR)
            return sys_error("poll process " + std::to_string(members.front()), errno);
        // An exited process stays listed for a moment.
        if (!waiting.wait())
            return past_deadline(std::to_string(members.size()) + " processes are left in " + directory +
                                 ", the first is " + std::to_string(members.front()));
    }
}

result<void> remove_tree(const std::string& directory, time_point deadline) {
    GANTRY_TRY(const auto names, subgroups(directory));
    for (const auto& name : names) GANTRY_CHECK(remove_tree(directory + "/" + name, deadline));
    pace waiting(deadline);
    do {
        if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return {};
        if (errno != EBUSY) return sys_error("rmdir " + directory, errno);
    } while (waiting.wait());
    std::vector<pid_t> members;
    GANTRY_CHECK(collect_processes(directory, members));
    return error{.code = code::busy,
                 .message = "rmdir " + directory + ": " + std::to_string(members.size()) + " processes are in it",
                 .sys_errno = EBUSY,
                 .retryable = true};
}

} // namespace

result<std::vector<pid_t>> hierarchy::processes(const std::string& group) const {
    std::vector<pid_t> members;
    for (const auto& directory : directories(layout_, group)) GANTRY_CHECK(collect_processes(directory, members));
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    return members;
}

result<void> hierarchy::freeze(const std::string& group, time_point deadline) const {
    if (version() == version::v2) return freeze_v2(layout_.unified + group, deadline);
    const std::string path = directory(group, "freezer");
    if (path.empty())
        return error{.code = code::unsupported, .message = "no freezer controller; " + group + " cannot be frozen"};
    return freeze_v1(path, deadline);
}

result<void> hierarchy::thaw(const std::string& group) const {
    if (version() == version::v2) return thaw_tree(layout_.unified + group, "/cgroup.freeze", "0");
    const std::string path = directory(group, "freezer");
    return path.empty() ? result<void>{} : thaw_v1(path);
}

result<void> hierarchy::kill_all(const std::string& group, time_point deadline) const {
    if (const std::string cpu = directory(group, "cpu"); !cpu.empty())
        version() == version::v2 ? lift_quota(cpu, "/cpu.max", "max") : lift_quota(cpu, "/cpu.cfs_quota_us", "-1");
    if (!layout_.unified.empty()) {
        GANTRY_TRY(const bool done, kill_v2(layout_.unified + group));
        if (!done) GANTRY_CHECK(kill_members(layout_.unified + group, false, deadline));
    }
    if (const std::string freezer = directory(group, "freezer"); version() == version::v1 && !freezer.empty())
        GANTRY_CHECK(thaw_v1(freezer)); // a frozen process does not die
    for (const auto& mount : layout_.v1) {
        // Whoever is in a v1 group but was not in the unified one.
        std::vector<pid_t> members, dying;
        GANTRY_CHECK(collect_processes(mount.point + group, members));
        if (!layout_.unified.empty()) GANTRY_CHECK(collect_processes(layout_.unified + group, dying));
        std::sort(dying.begin(), dying.end());
        const bool left = std::any_of(members.begin(), members.end(),
                                      [&](pid_t pid) { return !std::binary_search(dying.begin(), dying.end(), pid); });
        const bool freezable = mount.point + group == directory(group, "freezer");
        if (left) GANTRY_CHECK(kill_v1(mount.point + group, freezable, deadline));
    }
    return {};
}

result<void> hierarchy::wait_empty(const std::string& group, time_point deadline) const {
    if (!layout_.unified.empty()) {
        GANTRY_TRY(const bool empty, wait_event(layout_.unified + group, "populated", 0, deadline));
        if (!empty) return past_deadline("processes are left in " + layout_.unified + group);
    }
    for (const auto& mount : layout_.v1) GANTRY_CHECK(wait_for_exit(mount.point + group, deadline));
    return {};
}

result<void> hierarchy::remove(const std::string& group, time_point deadline) const {
    if (group.size() < 2) return error{.code = code::invalid, .message = "the root cgroup is not ours to remove"};
    for (const auto& directory : directories(layout_, group)) GANTRY_CHECK(remove_tree(directory, deadline));
    return {};
}

} // namespace gantry::cgroup
