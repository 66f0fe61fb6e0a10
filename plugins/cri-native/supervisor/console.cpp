#include "plugins/cri-native/supervisor/console.hpp"

#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "plugins/cri-native/supervisor/filesystem.hpp"
#include "plugins/cri-native/supervisor/process_record.hpp"
#include "plugins/cri-native/supervisor/target.hpp"

namespace gantry::cri_native::supervisor {

namespace {

constexpr gid_t tty_group = 5;

bool is_ptmx(int fd) noexcept {
    struct statfs fs {};
    struct stat st {};
    return ::fstatfs(fd, &fs) == 0 && fs.f_type == DEVPTS_SUPER_MAGIC && ::fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
           st.st_rdev == makedev(5, 2);
}

} // namespace

terminal open_terminal(const child& c, int devpts) noexcept {
    const process_record process(c.plan);
    sys::fd master(::openat(devpts, "ptmx", O_RDWR | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC));
    if (!master) c.fail(step::console, errno, "ptmx");
    if (!is_ptmx(master.get())) c.fail(step::console, EXDEV, "ptmx");
    const int unlock = 0;
    if (::ioctl(master.get(), TIOCSPTLCK, &unlock) != 0) c.fail(step::console, errno, "unlock");
    sys::fd slave(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!slave) c.fail(step::console, errno, "peer");
    if (::fchown(slave.get(), process.uid, tty_group) != 0 || ::fchmod(slave.get(), 0620) != 0)
        c.fail(step::console, errno, "owner");
    if (process.columns != 0 && process.rows != 0) {
        winsize size{};
        size.ws_col = static_cast<unsigned short>(process.columns);
        size.ws_row = static_cast<unsigned short>(process.rows);
        if (::ioctl(slave.get(), TIOCSWINSZ, &size) != 0) c.fail(step::console, errno, "size");
    }
    return {master.release(), slave.release()};
}

void bind_console(const child& c, int root, int slave) noexcept {
    const text path{"/dev/console", 12};
    const sys::fd target(open_target(root, path, {.if_missing = missing::make_file}));
    if (!target) c.fail(step::console, errno, path);
    const sys::fd tree(take_tree(slave, false));
    if (!tree) c.fail(step::console, errno, path);
    const sys::fd mounted(bind_on(tree.get(), {root, path, target.get()}, false));
    if (!mounted) c.fail(step::console, errno, path);
}

void adopt_terminal(const child& c, int slave) noexcept {
    if (::ioctl(slave, TIOCSCTTY, 0) != 0) c.fail(step::console, errno, "controlling terminal");
    for (int fd = 0; fd < 3; ++fd)
        if (::dup2(slave, fd) < 0) c.fail(step::console, errno, "stdio");
}

} // namespace gantry::cri_native::supervisor
