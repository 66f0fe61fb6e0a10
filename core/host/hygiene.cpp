#include "core/host/hygiene.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string_view>

namespace gantry::core {

namespace {

std::string link_target(int directory, const char* name) {
    char buffer[64];
    const ssize_t n = ::readlinkat(directory, name, buffer, sizeof buffer);
    return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string();
}

/// umask(2) cannot be read without being set, and it belongs to the whole process: read it once, from /proc, before others
/// could set it.
mode_t first_umask() {
    static const mode_t value = [] {
        std::ifstream status("/proc/self/status");
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("Umask:")) return static_cast<mode_t>(std::stoul(line.substr(6), nullptr, 8));
        return mode_t{022};
    }();
    return value;
}

std::atomic<std::size_t> environment{0}; ///< of the process: who finds a change first reports it

std::size_t environment_sum() {
    std::size_t sum = 0;
    for (char** entry = ::environ; entry && *entry; ++entry)
        sum = sum * 31 + std::hash<std::string_view>{}(*entry);
    return sum;
}

} // namespace

hygiene_check::hygiene_check()
    : directory_(::open("/proc/thread-self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC)), cwd_(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)),
      umask_(first_umask()) {
    std::size_t unset = 0;
    environment.compare_exchange_strong(unset, environment_sum());
    for (const auto& [file, kind] : {std::pair{"net", "netns_changed"}, {"mnt", "mntns_changed"}, {"uts", "utsns_changed"}, {"ipc", "ipcns_changed"}})
        namespaces_.push_back({.file = file,
                               .kind = kind,
                               .name = link_target(directory_.get(), file),
                               .fd = base::unique_fd(::openat(directory_.get(), file, O_RDONLY | O_CLOEXEC))});
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask_);
    struct stat st {};
    if (::fstat(cwd_.get(), &st) == 0) {
        cwd_device_ = st.st_dev;
        cwd_inode_ = st.st_ino;
    }
}

void hygiene_check::check_namespaces(std::vector<hygiene_fault>& out) {
    for (const auto& ns : namespaces_) {
        const auto now = link_target(directory_.get(), ns.file);
        if (now == ns.name) continue;
        const bool back = ::setns(ns.fd.get(), 0) == 0;
        out.push_back({ns.kind, "left its thread in " + now + " instead of " + ns.name + (back ? "" : ", and it cannot be moved back")});
    }
}

void hygiene_check::check_signals(std::vector<hygiene_fault>& out) {
    sigset_t now;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
    for (int signal = 1; signal < SIGRTMIN; ++signal) {
        if (sigismember(&now, signal) == sigismember(&mask_, signal)) continue;
        ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
        out.push_back({"sigmask_changed", "left signal " + std::to_string(signal) + (sigismember(&mask_, signal) ? " unblocked" : " blocked")});
        return;
    }
}

void hygiene_check::check_process(std::vector<hygiene_fault>& out) {
    if (const auto now = ::umask(umask_); now != umask_) { // sets what it should be and says what it was, in one step
        char text[64];
        std::snprintf(text, sizeof text, "left umask %03o instead of %03o", now, umask_);
        out.push_back({"umask_changed", text});
    }
    struct stat st {};
    if (::fstatat(AT_FDCWD, "", &st, AT_EMPTY_PATH) == 0 && (st.st_dev != cwd_device_ || st.st_ino != cwd_inode_)) {
        const bool back = ::fchdir(cwd_.get()) == 0;
        out.push_back({"cwd_changed", std::string("changed the working directory of the process") + (back ? "" : ", and it cannot be restored")});
    }
    const auto now = environment_sum();
    if (environment.exchange(now) != now) // it cannot be put back safely: other threads may be reading it
        out.push_back({"environment_changed", "changed the environment of the process"});
}

std::vector<hygiene_fault> hygiene_check::all() {
    checked_ = std::chrono::steady_clock::now();
    std::vector<hygiene_fault> out;
    check_namespaces(out);
    check_signals(out);
    check_process(out);
    return out;
}

std::vector<hygiene_fault> hygiene_check::sampled(std::chrono::steady_clock::time_point now) {
    if (now - checked_ < std::chrono::milliseconds(100)) return {};
    return all();
}

} // namespace gantry::core
