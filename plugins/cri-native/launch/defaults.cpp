#include "plugins/cri-native/launch/defaults.hpp"

namespace gantry::cri_native::launch {

namespace {

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

} // namespace gantry::cri_native::launch
