#include "plugins/cri-native/supervisor/cgroup.hpp"

#include <signal.h>

namespace gantry::cri_native::supervisor {

namespace {

constexpr int max_rounds = 64;

bool write_file(text dir, const char* name, const char* value) noexcept {
    path_line path;
    path.add(dir).add("/").add(name);
    return sys::write_small(AT_FDCWD, path.c_str(), value, std::strlen(value));
}

// Signals every process once; how many there were.
int kill_listed(text dir) noexcept {
    path_line path;
    path.add(dir).add("/cgroup.procs");
    const sys::fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return 0;
    int killed = 0;
    pid_t pid = 0;
    char bytes[1024];
    for (;;) {
        const ssize_t n = sys::retry([&] { return ::read(file.get(), bytes, sizeof bytes); });
        if (n <= 0) break;
        for (ssize_t i = 0; i < n; ++i) {
            if (bytes[i] >= '0' && bytes[i] <= '9') {
                pid = pid * 10 + (bytes[i] - '0');
                continue;
            }
            if (pid > 1) killed += ::kill(pid, SIGKILL) == 0;
            pid = 0;
        }
    }
    return killed;
}

} // namespace

bool join_cgroup_v1(text dir) noexcept { return write_file(dir, "tasks", "0"); }
bool join_cgroup_v2(text dir) noexcept { return write_file(dir, "cgroup.procs", "0"); }

void kill_cgroup(text dir) noexcept {
    if (write_file(dir, "cgroup.kill", "1")) return;
    if (write_file(dir, "freezer.state", "FROZEN")) {
        kill_listed(dir);
        write_file(dir, "freezer.state", "THAWED");
    }
    // What forked between the reading and the signal is in the next round's list. The dead stay listed until reaped, so
    // the rounds are bounded; the caller comes back while the cgroup is not empty.
    for (int round = 0, before = -1; round < max_rounds; ++round) {
        const int now = kill_listed(dir);
        if (now == 0 || now == before) return;
        before = now;
    }
}

bool is_frozen(text dir) noexcept {
    char bytes[64];
    path_line path;
    path.add(dir).add("/freezer.state");
    if (sys::read_small(AT_FDCWD, path.c_str(), bytes, sizeof bytes) >= 0) return std::strncmp(bytes, "THAWED", 6) != 0;
    path.cut(0);
    path.add(dir).add("/cgroup.events");
    return sys::read_small(AT_FDCWD, path.c_str(), bytes, sizeof bytes) >= 0 && value_of(bytes, "frozen") == 1;
}

std::uint64_t oom_kills(text file) noexcept {
    char bytes[512];
    if (file.empty() || sys::read_small(AT_FDCWD, file.data, bytes, sizeof bytes) < 0) return 0;
    return value_of(bytes, "oom_kill");
}

} // namespace gantry::cri_native::supervisor
