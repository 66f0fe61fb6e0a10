#include "plugins/cri-native/supervisor/process.hpp"

#include <dirent.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "plugins/cri-native/supervisor/privileges.hpp"

namespace gantry::cri_native::supervisor {

namespace {

constexpr int status_fd = 3;

void reset_signals() noexcept {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    for (int s = 1; s < NSIG; ++s) ::sigaction(s, &standard, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Without close_range: what the host's /proc lists, until only stdio and the status socket remain.
bool close_listed(int proc) noexcept {
    const sys::fd dir(::openat(proc, "self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir) return false;
    alignas(std::uint64_t) char entries[2048];
    for (bool closed = true; closed;) {
        closed = false;
        if (::lseek(dir.get(), 0, SEEK_SET) != 0) return false;
        for (;;) {
            const long n = ::syscall(SYS_getdents64, dir.get(), entries, sizeof entries);
            if (n < 0) return false;
            if (n == 0) break;
            for (long at = 0; at < n;) {
                const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
                at += entry->d_reclen;
                int fd = 0;
                for (const char* p = entry->d_name; *p >= '0' && *p <= '9'; ++p) fd = fd * 10 + (*p - '0');
                if (fd > status_fd && fd != dir.get() && ::close(fd) == 0) closed = true;
            }
        }
    }
    return true;
}

bool enter_directory(text path) noexcept {
    if (!sys::has(wire::feature_openat2)) return ::chdir(path.data) == 0;
    const sys::fd dir(sys::openat2(AT_FDCWD, path.data, O_PATH | O_DIRECTORY | O_CLOEXEC, RESOLVE_NO_MAGICLINKS));
    return dir && ::fchdir(dir.get()) == 0;
}

// A directory outside the root has no path inside it: the kernel says "(unreachable)/...". (CVE-2024-21626.)
void prove_directory(const child& c, text path) noexcept {
    char now[4096];
    const long n = ::syscall(SYS_getcwd, now, sizeof now);
    if (n < 0 && errno != ENAMETOOLONG && errno != ERANGE) c.fail(step::cwd_outside, errno, path);
    if (n > 0 && now[0] != '/') c.fail(step::cwd_outside, EPERM, path);
}

void set_limits(const child& c) noexcept {
    c.plan.each(wire::tag::rlimit, [&](wire::fields f) {
        const auto resource = f.u32();
        struct {
            std::uint64_t soft, hard;
        } limit{f.u64(), f.u64()};
        if (::syscall(SYS_prlimit64, 0, resource, &limit, nullptr) != 0) {
            line<32> name;
            c.fail(step::rlimit, errno, name.number(resource));
        }
    });
}

bool runnable(const char* path, int& err) noexcept {
    struct stat st {};
    if (::stat(path, &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR && err != EACCES) err = errno;
        return false;
    }
    if (!S_ISREG(st.st_mode) || ::faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0) {
        err = EACCES;
        return false;
    }
    return true;
}

// As execvp would, but in one place, before the filter is on, and with an errno for what was found. (3.2 step 14)
void find_program(const child& c, const process_record& process, text name, path_line& found) noexcept {
    int err = ENOENT;
    if (name.empty()) c.fail(step::exec_lookup, ENOENT, name);
    if (std::memchr(name.data, '/', name.size)) {
        found.add(name);
        struct stat st {};
        if (::stat(name.data, &st) != 0) c.fail(step::exec_lookup, errno, name);
        if (!runnable(found.c_str(), err)) c.fail(step::exec_lookup, err, name);
        return;
    }
    for (const char* at = process.search_path.data;;) {
        const char* end = at;
        while (*end != '\0' && *end != ':') ++end;
        found.cut(0);
        found.add(at, static_cast<std::size_t>(end - at)).add(end == at ? "./" : "/").add(name);
        if (runnable(found.c_str(), err)) return;
        if (*end == '\0') break;
        at = end + 1;
    }
    c.fail(step::exec_lookup, err, name);
}

// Pointers to the texts of one tag, NULL at the end, as execve wants them.
char** vector_of(const child& c, wire::tag t) noexcept {
    auto** list = static_cast<char**>(sys::pages_new((c.plan.count(t) + 1) * sizeof(char*)));
    if (!list) c.fail(step::memory, errno);
    std::size_t i = 0;
    c.plan.each(t, [&](wire::fields f) { list[i++] = const_cast<char*>(f.text().data); });
    return list;
}

} // namespace

void prepare_process(const child& c, const process_record& process) noexcept {
    if (process.sets_oom_score_adj()) {
        line<16> value;
        value.signed_number(process.oom_score_adj);
        // Lowering it needs CAP_SYS_RESOURCE, which a node in a container may lack: it keeps what it has then.
        if (!write_proc(c.proc, "self/oom_score_adj", value.c_str(), value.size()) && errno != EACCES && errno != EPERM)
            c.fail(step::proc_write, errno, "oom_score_adj");
    }
    // Kernels without keyrings, or a filter around the node: then there is none to share either.
    ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
}

void close_descriptors(child& c) noexcept {
    if (c.status != status_fd && ::dup3(c.status, status_fd, O_CLOEXEC) < 0) c.fail(step::stdio, errno);
    c.status = status_fd;
    if (sys::has(wire::feature_close_range) ? sys::close_range(status_fd + 1, ~0u, 0) != 0 : !close_listed(c.proc))
        c.fail(step::stdio, errno, "close inherited descriptors");
    c.proc = -1;
}

void become_process(const child& c, const process_record& process) noexcept {
    reset_signals();
    ::umask(process.umask);
    const bool entered = enter_directory(process.cwd);
    set_limits(c);
    if (!process.no_new_privs()) install_seccomp(c); // while CAP_SYS_ADMIN is still there
    drop_to(c, process);
    if (!entered && !enter_directory(process.cwd)) {
        line<16> uid;
        c.fail(step::cwd, errno, process.cwd, uid.number(process.uid));
    }
    prove_directory(c, process.cwd);
    if (process.no_new_privs() && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) c.fail(step::no_new_privs, errno);
    char** const argv = vector_of(c, wire::tag::argument);
    char** const env = vector_of(c, wire::tag::environment);
    path_line program;
    find_program(c, process, c.plan.first(wire::tag::argument).text(), program);
    if (process.no_new_privs()) install_seccomp(c);
    ::execve(program.c_str(), argv, env);
    c.fail(step::exec, errno, program);
}

} // namespace gantry::cri_native::supervisor
