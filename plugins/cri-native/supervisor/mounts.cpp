#include "plugins/cri-native/supervisor/mounts.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "plugins/cri-native/supervisor/devices.hpp"
#include "plugins/cri-native/supervisor/filesystem.hpp"
#include "plugins/cri-native/supervisor/target.hpp"

namespace gantry::cri_native::supervisor {

namespace {

// As launch::mount_kind and launch::mount_propagation; the values are wire format.
enum class kind : std::uint32_t { bind = 1, tmpfs, proc, sysfs, dev, devpts, mqueue, cgroup, shm };
enum propagation : std::uint32_t { rprivate = 0, rslave = 1, rshared = 2 };

constexpr const char* types[] = {"", "", "tmpfs", "proc", "sysfs", "tmpfs", "devpts", "mqueue", "", ""};

// The only places inside a container's /proc that a mount may cover: lxcfs and friends. (CVE-2019-19921.)
constexpr const char* proc_targets[] = {"/proc/cpuinfo",
                                        "/proc/diskstats",
                                        "/proc/meminfo",
                                        "/proc/stat",
                                        "/proc/swaps",
                                        "/proc/uptime",
                                        "/proc/loadavg",
                                        "/proc/slabinfo",
                                        "/proc/net/dev",
                                        "/proc/sys/kernel/ns_last_pid",
                                        "/proc/sys/crypto/fips_enabled"};

std::uint64_t attributes_of(std::uint32_t flags) noexcept {
    std::uint64_t attributes = 0;
    if (flags & wire::mount_nosuid) attributes |= MOUNT_ATTR_NOSUID;
    if (flags & wire::mount_nodev) attributes |= MOUNT_ATTR_NODEV;
    if (flags & wire::mount_noexec) attributes |= MOUNT_ATTR_NOEXEC;
    return attributes;
}

bool allowed_in_proc(int target, text path) noexcept {
    struct statfs fs {};
    if (::fstatfs(target, &fs) != 0 || fs.f_type != PROC_SUPER_MAGIC) return true;
    for (const char* allowed : proc_targets)
        if (path == allowed) return true;
    return false;
}

} // namespace

struct mount_set::entry {
    supervisor::kind type;
    text source;
    text target;
    std::uint32_t flags;
    std::uint32_t propagation;
    wire::fields options; // u32 count, then texts
    int tree;             // binds: what to attach, -1 for new filesystems
    int mounted;          // root of the mount once attached

    void add_options(new_filesystem& fs) const noexcept {
        wire::fields f = options;
        for (std::uint32_t left = f.u32(); left > 0 && !f.bad(); --left) fs.option(f.text());
    }
};

mount_set::mount_set(const child& c) noexcept : c_(c) {
    count_ = c.plan.count(wire::tag::mount);
    if (count_ == 0) return;
    entries_ = static_cast<entry*>(sys::pages_new(count_ * sizeof(entry)));
    if (!entries_) c.fail(step::memory, errno);
    std::size_t i = 0;
    c.plan.each(wire::tag::mount, [&](wire::fields f) {
        entry& e = entries_[i++];
        e.type = static_cast<kind>(f.u32());
        e.source = f.text();
        e.target = f.text();
        e.flags = f.u32();
        e.propagation = f.u32();
        e.options = f;
        e.tree = e.mounted = -1;
        if (e.type < kind::bind || e.type > kind::shm) c.fail(step::plan, EOPNOTSUPP, e.target);
    });
}

void mount_set::take_sources() noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
        entry& e = entries_[i];
        path_line source;
        if (e.type == kind::bind)
            source.add(e.source);
        else if (e.type == kind::shm)
            source.add(c_.run_dir).add("/shm");
        else if (e.type == kind::cgroup && c_.plan.first(wire::tag::cgroup_head).u32() != 0)
            source.add("/sys/fs/cgroup"); // the host's cgroup namespace shows the host's tree
        else
            continue;
        e.tree = take_tree(source.c_str(), true);
        if (e.tree < 0) c_.fail(step::bind_source, errno, source);
        if (e.propagation == rshared && !sys::has(wire::feature_mount_api))
            c_.fail(step::propagation, ENOSYS, e.target);
    }
}

void mount_set::attach(int root) noexcept {
    for (std::size_t i = 0; i < count_; ++i) attach_one(root, entries_[i]);
}

void mount_set::attach_one(int root, entry& e) noexcept {
    target_options options{.if_missing = missing::make_directory,
                           .no_symlink = e.type == kind::proc || e.type == kind::sysfs || e.type == kind::dev};
    if (e.tree >= 0) {
        struct stat st {};
        if (::fstat(e.tree, &st) != 0) c_.fail(step::bind_source, errno, e.source);
        if (!S_ISDIR(st.st_mode)) options.if_missing = missing::make_file;
    }
    const sys::fd target(open_target(root, e.target, options));
    if (!target && errno == ELOOP && options.no_symlink) c_.fail(step::mount_target_symlink, ELOOP, e.target);
    if (!target) c_.fail(step::mount_target, errno, e.target);
    if (!allowed_in_proc(target.get(), e.target)) c_.fail(step::mount_target_proc, EPERM, e.target);
    const spot where{root, e.target, target.get()};
    if (e.tree >= 0) {
        e.mounted = bind_on(e.tree, where, true);
        if (e.mounted < 0) c_.fail(step::mount, errno, e.target);
        static constexpr unsigned long modes[] = {MS_PRIVATE, MS_SLAVE, MS_SHARED};
        if (e.propagation > rshared || !set_propagation(e.mounted, modes[e.propagation]))
            c_.fail(step::propagation, errno, e.target);
        ::close(e.tree);
        return;
    }
    if (e.type == kind::cgroup) {
        e.mounted = cgroups(where, e);
        return;
    }
    new_filesystem fs(types[static_cast<std::uint32_t>(e.type)]);
    e.add_options(fs);
    e.mounted = fs.mount_on(where, attributes_of(e.flags));
    if (e.mounted < 0) c_.fail(step::mount, errno, e.target, fs.detail());
    if (e.type == kind::dev) add_device_links(c_, e.mounted);
    if (e.type == kind::devpts) devpts_ = e.mounted;
}

// Inside the container's own cgroup namespace each hierarchy's root is the container's directory.
int mount_set::cgroups(const spot& where, const entry& e) noexcept {
    const std::uint64_t attributes = attributes_of(e.flags);
    if (c_.plan.count(wire::tag::cgroup_v1) == 0) {
        new_filesystem fs("cgroup2");
        const int mounted = fs.mount_on(where, attributes);
        if (mounted < 0) c_.fail(step::cgroup_mount, errno, e.target, fs.detail());
        return mounted;
    }
    new_filesystem tmp("tmpfs");
    tmp.option("mode=755");
    const int top = tmp.mount_on(where, attributes);
    if (top < 0) c_.fail(step::cgroup_mount, errno, e.target, tmp.detail());
    c_.plan.each(wire::tag::cgroup_v1, [&](wire::fields f) {
        f.text(); // its directory on the host
        const text name = f.text();
        if (::mkdirat(top, name.data, 0755) != 0) c_.fail(step::cgroup_mount, errno, name);
        const sys::fd below(::openat(top, name.data, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC));
        if (!below) c_.fail(step::cgroup_mount, errno, name);
        new_filesystem fs("cgroup");
        for (std::uint32_t left = f.u32(); left > 0 && !f.bad(); --left) {
            const text option = f.text();
            fs.option(option);
            if (!same(option, name) && std::memchr(name.data, ',', name.size)) ::symlinkat(name.data, top, option.data);
        }
        const sys::fd mounted(fs.mount_on({top, name, below.get()},
                                          attributes | (e.flags & wire::mount_readonly ? MOUNT_ATTR_RDONLY : 0)));
        if (!mounted) c_.fail(step::cgroup_mount, errno, name, fs.detail());
    });
    return top;
}

void mount_set::seal() noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
        const entry& e = entries_[i];
        std::uint64_t attributes = attributes_of(e.flags);
        if (e.flags & wire::mount_readonly) attributes |= MOUNT_ATTR_RDONLY;
        if (!add_attributes(e.mounted, attributes, (e.flags & wire::mount_recursive_readonly) != 0))
            c_.fail(step::mount_attributes, errno, e.target);
        ::close(e.mounted);
    }
}

} // namespace gantry::cri_native::supervisor
