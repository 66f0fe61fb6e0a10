// Plans: all that the pod supervisor is told to do. Every decision (users, paths, capabilities, seccomp, cgroups) is
// taken by the plugin; the supervisor parses nothing but these records and executes them. Strings are raw bytes without
// NUL: environments and paths are never checked for UTF-8. [data only]
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gantry::cri_native::launch {

/// One file below /proc/sys by its dotted name ("net.ipv4.ip_forward"). Slashes are allowed
/// ("net/ipv4/conf/eth0.1/mtu").
struct sysctl {
    std::string name{};
    std::string value{};
};

/// Where a supervisor lives itself.
struct supervisor_cgroup {
    std::vector<std::string> v1{}; ///< one directory a hierarchy
    std::string v2{};              ///< unified or hybrid; it is born there if the kernel can
};

/// What a pod's supervisor holds while the pod lives.
struct sandbox_plan {
    std::string id{};      ///< as container ids: [A-Za-z0-9_+-][A-Za-z0-9_+.-]*, at most 128 bytes
    std::string run_dir{}; ///< absolute, on tmpfs, exists, root-owned; the supervisor's socket and records live there
    bool host_network = false;
    bool host_ipc = false;
    bool host_uts = false;    ///< set it with host_network, as Kubernetes does
    bool shared_pid = false;  ///< shareProcessNamespace: one PID namespace whose PID 1 is a reaper in an empty root
    std::string hostname{};   ///< set when not host_uts; empty leaves the host's
    std::string domainname{}; ///< NIS domain; empty leaves it alone
    std::vector<sysctl> sysctls{}; ///< applied inside the pod's net, ipc and uts namespaces
    std::uint64_t shm_bytes = 0;   ///< size of the pod's own /dev/shm, 0 for none (host_ipc uses the host's)
    int oom_score_adj = -999;      ///< of the supervisor; kept at the inherited value where lowering is not permitted
    supervisor_cgroup cgroup{};    ///< outside the pod's
};

struct rlimit_plan {
    int resource; ///< RLIMIT_*
    std::uint64_t soft;
    std::uint64_t hard; ///< RLIM_INFINITY for none
};

/// How a process runs; the same for a container's first process and for exec.
struct process_plan {
    std::vector<std::string> argv{}; ///< argv[0] is looked up on PATH after the switch of user
    std::vector<std::string> env{};  ///< "NAME=value"; PATH is added when absent, HOME is not
    std::string cwd = "/";           ///< absolute in the container; created if missing and the root is writable
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups{}; ///< supplementary groups, exactly these
    mode_t umask = 0022;
    std::uint64_t capabilities =
        0; ///< bit n is CAP n: bounding, permitted and effective; inheritable and ambient are always empty
    bool no_new_privs = true;
    std::vector<std::uint8_t> seccomp{}; ///< struct sock_filter[], compiled by the plugin; empty for unconfined
    std::vector<rlimit_plan> rlimits{};
    std::optional<int> oom_score_adj{};
    bool tty = false;
    std::uint16_t tty_columns = 0; ///< with tty: initial size, 0 leaves the kernel's
    std::uint16_t tty_rows = 0;
};

/// overlay(5) over the image's layers. Paths are absolute; keep them short (fsconfig takes 255 bytes each, the fallback
/// mount(2) one page for all: they are then given relative to `base`).
struct overlay_plan {
    std::string base{};               ///< directory that relative `lower` names start from; may be empty
    std::vector<std::string> lower{}; ///< top-most first; at least one
    std::string upper{};              ///< empty: no upper, the root is read-only
    std::string work{};
    std::vector<std::string> options{}; ///< "volatile", "index=off", ...
};

struct rootfs_plan {
    std::optional<overlay_plan> overlay{};
    std::string bind{};    ///< used when there is no overlay: this directory is the root
    bool readonly = false; ///< readOnlyRootFilesystem; mounts keep their own mode
};

enum class mount_kind : std::uint8_t {
    bind = 1, ///< source: a host path
    tmpfs = 2,
    proc = 3,   ///< target must not be a symlink in the image
    sysfs = 4,  ///< same
    dev = 5,    ///< a fresh tmpfs with the plan's devices and the standard links; same
    devpts = 6, ///< a new instance
    mqueue = 7, ///< the pod's IPC namespace
    cgroup = 8, ///< what cgroup_plan names: hierarchies (v1) below a tmpfs, or cgroup2
    shm = 9, ///< the pod's shared /dev/shm (sandbox_plan::shm_bytes); host path of the host's with host_ipc: use bind
};

enum class mount_propagation : std::uint8_t { rprivate = 0, rslave = 1, rshared = 2 };

struct mount_plan {
    mount_kind kind = mount_kind::bind;
    std::string source{};
    std::string target{}; ///< absolute in the container; resolved inside the root, created when missing
    bool readonly = false;
    bool recursive_readonly = false; ///< with readonly: every submount too; fails where the kernel cannot (< 5.12)
    bool nosuid = false;
    bool nodev = false;
    bool noexec = false;
    mount_propagation propagation = mount_propagation::rprivate; ///< binds only
    std::vector<std::string> options{};                          ///< of new filesystems: "size=67108864", "mode=1777"
};

struct device_plan {
    std::string path{}; ///< "/dev/fuse"; resolved inside the root, its directory is made when missing
    char type = 'c';    ///< 'c' or 'b'
    std::uint32_t major = 0;
    std::uint32_t minor = 0;
    mode_t mode = 0666;
    uid_t uid = 0;
    gid_t gid = 0;
};

/// Where the container's processes are accounted. Limits are written by the plugin before create.
struct cgroup_plan {
    struct hierarchy {
        std::string dir;     ///< absolute host path of the container's directory in it
        std::string options; ///< "memory", "cpu,cpuacct", "none,name=systemd": names the v1 mount in the container
    };
    std::vector<hierarchy> v1{}; ///< the child writes 0 to `tasks` of each
    std::string v2{};            ///< cgroup v2 directory (unified or hybrid); the child is cloned into it
    bool host_namespace = false; ///< keep the host's cgroup namespace (privileged on v1)
    std::string freezer_dir{};   ///< v1: the freezer hierarchy's directory again, to stop exec trees; empty on v2
    std::string oom_file{}; ///< "memory.oom_control" or "memory.events" of this container; empty: oom is not reported
};

enum class pid_mode : std::uint8_t { container = 0, pod = 1, host = 2 };

struct container_plan {
    std::string id{};       ///< [A-Za-z0-9_+-][A-Za-z0-9_+.-]*, at most 128 bytes
    std::string log_path{}; ///< CRI log file, opened for append and reopened on command; empty discards the output
    process_plan process{};
    rootfs_plan rootfs{};
    std::vector<mount_plan> mounts{}; ///< any order: they are sorted by depth, equal depths keep their order
    std::vector<std::string> masked_paths{};
    std::vector<std::string> readonly_paths{};
    std::vector<device_plan> devices{};
    cgroup_plan cgroup{};
    pid_mode pid = pid_mode::container;
    bool stdin_open = false;
    bool stdin_once = false; ///< the first attached client's end of input is the container's
};

struct exec_plan {
    process_plan process{};
    std::uint64_t timeout_ns = 0;            ///< after it the whole tree of the command is killed; 0 for none
    std::uint64_t capture_limit = 16u << 20; ///< captured output kept per stream; the rest is read and dropped
};

} // namespace gantry::cri_native::launch
