#include "plugins/cri-native/supervisor/masks.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "plugins/cri-native/supervisor/filesystem.hpp"
#include "plugins/cri-native/supervisor/target.hpp"

namespace gantry::cri_native::supervisor {

namespace {

bool absent(int err) noexcept { return err == ENOENT || err == ENOTDIR; }

int open_null(const child& c) noexcept {
    sys::fd null(::open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat st {};
    if (!null || ::fstat(null.get(), &st) != 0) c.fail(step::masked_path, errno, "/dev/null");
    if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)) c.fail(step::masked_path, ENODEV, "/dev/null");
    return null.release();
}

} // namespace

void mask_paths(const child& c, int root) noexcept {
    if (c.plan.count(wire::tag::masked) == 0) return;
    const sys::fd null(open_null(c));
    sys::fd empty; // the first masked directory's tmpfs covers the others too
    c.plan.each(wire::tag::masked, [&](wire::fields f) {
        const text path = f.text();
        const sys::fd target(open_target(root, path, {}));
        if (!target && absent(errno)) return;
        struct stat st {};
        if (!target || ::fstat(target.get(), &st) != 0) c.fail(step::masked_path, errno, path);
        const spot where{root, path, target.get()};
        if (S_ISDIR(st.st_mode) && !empty) {
            new_filesystem fs("tmpfs");
            fs.option("nr_inodes=2");
            empty.reset(
                fs.mount_on(where, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
            if (!empty) c.fail(step::masked_path, errno, path, fs.detail());
            return;
        }
        const sys::fd tree(take_tree(S_ISDIR(st.st_mode) ? empty.get() : null.get(), false));
        if (!tree) c.fail(step::masked_path, errno, path);
        const sys::fd mounted(bind_on(tree.get(), where, false));
        if (!mounted) c.fail(step::masked_path, errno, path);
    });
}

void make_paths_readonly(const child& c, int root) noexcept {
    c.plan.each(wire::tag::readonly, [&](wire::fields f) {
        const text path = f.text();
        const sys::fd target(open_target(root, path, {}));
        if (!target && absent(errno)) return;
        if (!target) c.fail(step::readonly_path, errno, path);
        const sys::fd tree(take_tree(target.get(), true));
        if (!tree) c.fail(step::readonly_path, errno, path);
        const sys::fd mounted(bind_on(tree.get(), {root, path, target.get()}, true));
        if (!mounted || !add_attributes(mounted.get(), MOUNT_ATTR_RDONLY, false))
            c.fail(step::readonly_path, errno, path);
    });
}

} // namespace gantry::cri_native::supervisor
