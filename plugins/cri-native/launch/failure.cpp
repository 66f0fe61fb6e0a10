#include "plugins/cri-native/launch/failure.hpp"

#include <system_error>

namespace gantry::cri_native::launch {

namespace {

using wire::step;

// What was being done, with "%" for the object.
constexpr std::string_view phrase(step s) {
    switch (s) {
    case step::none: return "unknown step";
    case step::protocol: return "request not understood by the supervisor";
    case step::plan: return "plan refused by the supervisor";
    case step::not_found: return "container % is not known to its supervisor";
    case step::state: return "container % is not in a state for this";
    case step::busy: return "the supervisor is held by another process";
    case step::memory: return "the supervisor has no memory left";
    case step::namespaces: return "create the pod's namespaces";
    case step::hostname: return "set host name \"%\"";
    case step::sysctl: return "set sysctl %";
    case step::pin: return "pin the network namespace at %";
    case step::shm: return "mount the pod's /dev/shm at %";
    case step::pod_init: return "use the pod's shared PID namespace";
    case step::loopback: return "bring the loopback interface up";
    case step::log: return "open log %";
    case step::pipe: return "create the streams of %";
    case step::clone: return "clone the first process of %";
    case step::cgroup_join: return "join cgroup %";
    case step::cgroup_namespace: return "create the cgroup namespace";
    case step::propagation: return "set the mount propagation of %";
    case step::bind_source: return "mount source %";
    case step::rootfs: return "mount the root file system (%)";
    case step::mount_target: return "mount target %";
    case step::mount_target_symlink: return "mount target % is a symbolic link in the image";
    case step::mount_target_proc: return "mount target % lies inside /proc";
    case step::mount: return "mount on %";
    case step::mount_attributes: return "set the mount options of %";
    case step::device: return "create device %";
    case step::cgroup_mount: return "mount cgroup %";
    case step::masked_path: return "mask path %";
    case step::readonly_path: return "make path % read-only";
    case step::console: return "set up the terminal (%)";
    case step::pivot_root: return "enter the root file system (%)";
    case step::proc_write: return "write %";
    case step::cwd: return "working directory \"%\"";
    case step::cwd_outside: return "working directory \"%\" lies outside the container's root";
    case step::session: return "create the session";
    case step::rlimit: return "set resource limit number %";
    case step::capabilities: return "set capabilities (%)";
    case step::user: return "switch user (%)";
    case step::no_new_privs: return "set no_new_privs";
    case step::seccomp: return "install the seccomp filter";
    case step::exec_lookup: return "exec: \"%\"";
    case step::exec: return "exec: \"%\"";
    case step::join: return "join the container's namespaces";
    case step::frozen: return "container % is frozen";
    case step::died: return "the first process of % died before it could start";
    case step::stdio: return "set up the streams of %";
    case step::socket: return "create a socket in the pod's network";
    }
    return "step unknown to this version";
}

std::string with_object(std::string_view text, const std::string& object) {
    std::string out(text);
    if (const auto at = out.find('%'); at != std::string::npos) out.replace(at, 1, object);
    return out;
}

std::string reason(int err) { return std::generic_category().message(err); }

std::string lookup_message(const failure& f) {
    const bool by_path = f.object.find('/') == std::string::npos;
    if (f.err == ENOENT && by_path) return "exec: \"" + f.object + "\": executable file not found in $PATH";
    if (f.err == EACCES) return "exec: \"" + f.object + "\": permission denied";
    return "exec: \"" + f.object + "\": " + reason(f.err);
}

std::string exec_message(const failure& f) {
    switch (f.err) {
    case ENOENT:
        return "exec: \"" + f.object + "\": no such file or directory: its interpreter or dynamic loader is missing";
    case ENOEXEC:
        return "exec: \"" + f.object +
               "\": exec format error: not a program for this machine, or a script without \"#!\"";
    default: return "exec: \"" + f.object + "\": " + reason(f.err);
    }
}

std::string message_of(const failure& f) {
    switch (f.step) {
    case step::exec_lookup: return lookup_message(f);
    case step::exec: return exec_message(f);
    case step::cwd:
        if (f.err == EACCES) return with_object(phrase(f.step), f.object) + " is not accessible to uid " + f.detail;
        return with_object(phrase(f.step), f.object) + ": " + reason(f.err);
    case step::mount_target_symlink:
    case step::mount_target_proc:
    case step::cwd_outside:
    case step::busy:
    case step::not_found:
    case step::frozen: return with_object(phrase(f.step), f.object);
    default: break;
    }
    std::string message = with_object(phrase(f.step), f.object);
    if (f.err != 0) message += ": " + reason(f.err);
    if (!f.detail.empty()) message += " (" + f.detail + ")";
    return message;
}

code code_of(const failure& f) {
    switch (f.step) {
    case step::not_found: return code::not_found;
    case step::busy:
    case step::frozen: return code::busy;
    case step::mount_target_symlink:
    case step::mount_target_proc:
    case step::cwd_outside: return code::invalid;
    case step::died: return f.err == ENOMEM ? code::resource : code::internal;
    default: return code_of_errno(f.err);
    }
}

} // namespace

error to_error(const failure& f) {
    error e = sys_error("", f.err);
    e.code = code_of(f);
    e.message = message_of(f);
    return e;
}

std::string argument_sizes(const process_plan& process) {
    std::size_t total = 0;
    const std::string* largest = nullptr;
    for (const auto* list : {&process.argv, &process.env})
        for (const auto& text : *list) {
            total += text.size() + 1 + sizeof(char*);
            if (!largest || text.size() > largest->size()) largest = &text;
        }
    constexpr std::size_t one_limit = 128u << 10; // MAX_ARG_STRLEN
    std::string out = " (arguments and environment: " + std::to_string(total) + " bytes";
    if (largest && largest->size() >= one_limit)
        out += "; \"" + largest->substr(0, std::min<std::size_t>(largest->find('='), 40)) + "\" has " +
               std::to_string(largest->size()) + " of at most " + std::to_string(one_limit - 1);
    else
        out += ", limit " + std::to_string(2u << 20) +
               "; many Services? enableServiceLinks: false keeps their variables out";
    return out + ")";
}

} // namespace gantry::cri_native::launch
