#include "plugins/cri-native/launch/defaults.hpp"

#include <linux/capability.h>

#include <cctype>
#include <iterator>
#include <string_view>

namespace gantry::cri_native::launch {

namespace {

// In the kernel's order: the index is the number.
constexpr std::string_view capability_names[] = {"CHOWN",
                                                 "DAC_OVERRIDE",
                                                 "DAC_READ_SEARCH",
                                                 "FOWNER",
                                                 "FSETID",
                                                 "KILL",
                                                 "SETGID",
                                                 "SETUID",
                                                 "SETPCAP",
                                                 "LINUX_IMMUTABLE",
                                                 "NET_BIND_SERVICE",
                                                 "NET_BROADCAST",
                                                 "NET_ADMIN",
                                                 "NET_RAW",
                                                 "IPC_LOCK",
                                                 "IPC_OWNER",
                                                 "SYS_MODULE",
                                                 "SYS_RAWIO",
                                                 "SYS_CHROOT",
                                                 "SYS_PTRACE",
                                                 "SYS_PACCT",
                                                 "SYS_ADMIN",
                                                 "SYS_BOOT",
                                                 "SYS_NICE",
                                                 "SYS_RESOURCE",
                                                 "SYS_TIME",
                                                 "SYS_TTY_CONFIG",
                                                 "MKNOD",
                                                 "LEASE",
                                                 "AUDIT_WRITE",
                                                 "AUDIT_CONTROL",
                                                 "SETFCAP",
                                                 "MAC_OVERRIDE",
                                                 "MAC_ADMIN",
                                                 "SYSLOG",
                                                 "WAKE_ALARM",
                                                 "BLOCK_SUSPEND",
                                                 "AUDIT_READ",
                                                 "PERFMON",
                                                 "BPF",
                                                 "CHECKPOINT_RESTORE"};
static_assert(std::size(capability_names) == CAP_CHECKPOINT_RESTORE + 1);

mount_plan file_system(mount_kind kind, std::string target, std::vector<std::string> options) {
    mount_plan m;
    m.kind = kind;
    m.target = std::move(target);
    m.nosuid = true;
    m.noexec = kind != mount_kind::dev;
    m.nodev = kind != mount_kind::dev && kind != mount_kind::devpts;
    m.options = std::move(options);
    return m;
}

} // namespace

std::vector<mount_plan> default_mounts(bool privileged) {
    std::vector<mount_plan> mounts;
    mounts.push_back(file_system(mount_kind::proc, "/proc", {}));
    mounts.push_back(file_system(mount_kind::dev, "/dev", {"mode=755", "size=65536k"}));
    mounts.push_back(
        file_system(mount_kind::devpts, "/dev/pts", {"newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}));
    mounts.push_back(file_system(mount_kind::shm, "/dev/shm", {}));
    mounts.push_back(file_system(mount_kind::mqueue, "/dev/mqueue", {}));
    mounts.push_back(file_system(mount_kind::sysfs, "/sys", {}));
    mounts.push_back(file_system(mount_kind::cgroup, "/sys/fs/cgroup", {}));
    for (auto& m : mounts)
        if (m.kind == mount_kind::sysfs || m.kind == mount_kind::cgroup) m.readonly = !privileged;
    return mounts;
}

std::vector<device_plan> default_devices() {
    return {{.path = "/dev/null", .major = 1, .minor = 3},    {.path = "/dev/zero", .major = 1, .minor = 5},
            {.path = "/dev/full", .major = 1, .minor = 7},    {.path = "/dev/random", .major = 1, .minor = 8},
            {.path = "/dev/urandom", .major = 1, .minor = 9}, {.path = "/dev/tty", .major = 5, .minor = 0}};
}

std::vector<std::string> default_masked_paths() {
    return {"/proc/asound",
            "/proc/acpi",
            "/proc/kcore",
            "/proc/keys",
            "/proc/latency_stats",
            "/proc/timer_list",
            "/proc/timer_stats",
            "/proc/sched_debug",
            "/proc/scsi",
            "/sys/firmware",
            "/sys/devices/virtual/powercap"};
}

std::vector<std::string> default_readonly_paths() {
    return {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};
}

std::uint64_t capability_bit(std::string_view name) {
    std::string upper;
    for (const char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    std::string_view plain = upper;
    if (plain.starts_with("CAP_")) plain.remove_prefix(4);
    for (std::size_t i = 0; i < std::size(capability_names); ++i)
        if (capability_names[i] == plain) return std::uint64_t{1} << i;
    return 0;
}

std::uint64_t default_capabilities() {
    std::uint64_t set = 0;
    for (const auto name : {"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID",
                            "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"})
        set |= capability_bit(name);
    return set;
}

std::uint64_t all_capabilities() { return (std::uint64_t{1} << std::size(capability_names)) - 1; }

} // namespace gantry::cri_native::launch
