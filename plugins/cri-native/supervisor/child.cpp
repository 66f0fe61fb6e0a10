#include "plugins/cri-native/supervisor/child.hpp"

#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace gantry::cri_native::supervisor {

namespace {

constexpr ino_t proc_root_ino = 1;
constexpr int failed_exit_code = 128; // nobody reads it: the report says what happened

bool is_procfs(int fd) noexcept {
    struct statfs fs {};
    return ::fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

template <std::size_t Size>
void copy_text(char (&to)[Size], text from) noexcept {
    const std::size_t n = from.size < Size - 1 ? from.size : Size - 1;
    std::memcpy(to, from.data, n);
    to[n] = '\0';
}

void send_report(int socket, const child_report& report, int handed_over) noexcept {
    iovec part{const_cast<child_report*>(&report), sizeof report};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (handed_over >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(head), &handed_over, sizeof handed_over);
    }
    sys::retry([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
}

} // namespace

void child::fail(step at, int err, text object, text detail) const noexcept {
    child_report report{};
    report.what = child_report::failed;
    report.step = static_cast<std::uint32_t>(at);
    report.err = err;
    copy_text(report.object, object);
    copy_text(report.detail, detail);
    send_report(status, report, -1);
    ::_exit(failed_exit_code);
}

void child::fail(step at, int err, const char* object) const noexcept {
    fail(at, err, text{object, static_cast<std::uint32_t>(std::strlen(object))});
}

void child::report_ready(int tty_master) const noexcept {
    child_report report{};
    report.what = child_report::ready;
    send_report(status, report, tty_master);
}

void child::wait_at_gate() const noexcept {
    char open = 0;
    const ssize_t n = sys::retry([&] { return ::recv(status, &open, sizeof open, 0); });
    if (n != 1) ::_exit(failed_exit_code); // the supervisor is gone: nobody will ever open the gate
}

int open_trusted_proc() noexcept {
    sys::fd proc(::open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!proc) return -1;
    struct stat st {};
    if (!is_procfs(proc.get()) || ::fstat(proc.get(), &st) != 0 || st.st_ino != proc_root_ino) {
        errno = EXDEV;
        return -1;
    }
    return proc.release();
}

bool write_proc(int proc, const char* path, const char* value, std::size_t size) noexcept {
    int opened = -1;
    if (sys::has(wire::feature_openat2))
        opened =
            sys::openat2(proc, path, O_WRONLY | O_CLOEXEC, RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS);
    else
        opened = ::openat(proc, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    const sys::fd file(opened);
    if (!file) return false;
    if (!is_procfs(file.get())) {
        errno = EXDEV;
        return false;
    }
    const ssize_t n = sys::retry([&] { return ::write(file.get(), value, size); });
    if (n >= 0 && static_cast<std::size_t>(n) != size) errno = EIO;
    return n == static_cast<ssize_t>(size);
}

} // namespace gantry::cri_native::supervisor
