#include "plugins/cri-native/supervisor/rootfs.hpp"

#include "plugins/cri-native/supervisor/filesystem.hpp"

namespace gantry::cri_native::supervisor {

namespace {

struct root_record {
    explicit root_record(wire::fields f) noexcept
        : kind(f.u32()), base(f.text()), upper(f.text()), work(f.text()), readonly(f.u32() != 0) {}
    std::uint32_t kind;
    text base;
    text upper;
    text work;
    bool readonly;
};

void add_escaped(path_line& to, text path) noexcept {
    for (std::uint32_t i = 0; i < path.size; ++i) {
        if (path.data[i] == ':' || path.data[i] == '\\') to.add("\\");
        to.add(path.data + i, 1);
    }
}

// One "lowerdir=a:b:c"; relative names keep it inside mount(2)'s page.
bool joined_lowers(const child& c, path_line& out) noexcept {
    out.add("lowerdir=");
    bool first = true;
    c.plan.each(wire::tag::lower, [&](wire::fields f) {
        if (!first) out.add(":");
        first = false;
        add_escaped(out, f.text());
    });
    return !out.truncated();
}

void add_common(const child& c, const root_record& plan, new_filesystem& fs) noexcept {
    path_line option;
    if (!plan.upper.empty()) {
        option.add("upperdir=").add(plan.upper);
        fs.option(option);
        option.cut(0);
        option.add("workdir=").add(plan.work);
        fs.option(option);
    }
    c.plan.each(wire::tag::root_option, [&](wire::fields f) { fs.option(f.text()); });
}

int overlay(const child& c, const root_record& plan, const spot& where) noexcept {
    if (!plan.base.empty() && ::chdir(plan.base.data) != 0) c.fail(step::rootfs, errno, plan.base);
    int mounted = -1;
    line<400> said;
    if (sys::has(wire::feature_mount_api)) { // layer by layer, each name with its own limit (Linux 6.7)
        new_filesystem fs("overlay");
        c.plan.each(wire::tag::lower, [&](wire::fields f) {
            path_line option;
            fs.option(option.add("lowerdir+=").add(f.text()));
        });
        add_common(c, plan, fs);
        mounted = fs.mount_on(where, 0);
        said.add(fs.detail());
        if (mounted < 0 && errno != EINVAL) c.fail(step::rootfs, errno, text{"overlay", 7}, said);
    }
    if (mounted < 0) {
        path_line data;
        if (!joined_lowers(c, data)) c.fail(step::rootfs, E2BIG, "overlay: the layers' names do not fit one page");
        new_filesystem fs("overlay", new_filesystem::api::mount2);
        fs.option(data);
        add_common(c, plan, fs);
        mounted = fs.mount_on(where, 0);
        if (mounted < 0) c.fail(step::rootfs, errno, text{"overlay", 7}, said);
    }
    if (::chdir("/") != 0) c.fail(step::rootfs, errno, "/");
    return mounted;
}

} // namespace

int make_root(const child& c) noexcept {
    const root_record plan(c.plan.first(wire::tag::root));
    path_line at;
    at.add(c.run_dir).add("/rootfs");
    const sys::fd target(::open(at.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const sys::fd slash(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!target || !slash) c.fail(step::rootfs, errno, at);
    const spot where{slash.get(), at, target.get()};
    if (plan.kind > wire::root_overlay) c.fail(step::plan, EOPNOTSUPP, "root");
    if (plan.kind == wire::root_overlay) return overlay(c, plan, where);
    const sys::fd tree(take_tree(plan.base.data, true));
    if (!tree) c.fail(step::rootfs, errno, plan.base);
    const int mounted = bind_on(tree.get(), where, true);
    if (mounted < 0) c.fail(step::rootfs, errno, plan.base);
    if (!set_propagation(mounted, MS_PRIVATE)) c.fail(step::propagation, errno, plan.base);
    return mounted;
}

void enter_root(const child& c, int root) noexcept {
    if (root_record(c.plan.first(wire::tag::root)).readonly && !add_attributes(root, MOUNT_ATTR_RDONLY, false))
        c.fail(step::mount_attributes, errno, "/");
    if (::fchdir(root) != 0) c.fail(step::pivot_root, errno, "fchdir");
    if (sys::pivot_root(".", ".") == 0) {
        // The host's tree is stacked on the new root now; all of it is a slave (step 3), so nothing propagates back.
        if (::umount2(".", MNT_DETACH) != 0) c.fail(step::pivot_root, errno, "detach the host's root");
    } else if (errno == EINVAL) {
        // The host itself runs from an initramfs, which cannot be pivoted away. Its tree stays mounted below ours, out
        // of reach of a process without CAP_SYS_CHROOT only.
        if (::mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 || ::chroot(".") != 0)
            c.fail(step::pivot_root, errno, "move the root");
    } else {
        c.fail(step::pivot_root, errno);
    }
    if (::chdir("/") != 0) c.fail(step::pivot_root, errno, "/");
}

} // namespace gantry::cri_native::supervisor
