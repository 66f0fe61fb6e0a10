#include "core/host/crash_handler.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

#include "core/host/current_call.hpp"

namespace gantry::core {

namespace {

struct code_range {
    std::atomic<std::uintptr_t> begin{0}, end{0};
    std::atomic<const char*> instance{nullptr};
};

constinit std::array<code_range, 1024> ranges{};
constinit std::atomic<std::size_t> range_count{0};
constinit std::atomic<int> crash_file{-1};
constinit thread_local unsigned forks = 0;

constexpr int crash_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
std::array<struct sigaction, 32> before{};

const char* name_of(int signal) {
    switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    default: return "SIGABRT";
    }
}

/// A line built without allocation: all of this must be safe inside a signal handler (signal-safety(7)).
class line {
public:
    void text(const char* text) {
        while (*text && size_ < sizeof bytes_ - 1) bytes_[size_++] = *text++;
    }
    void number(std::int64_t value) {
        char digits[24];
        int n = 0;
        do digits[n++] = static_cast<char>('0' + value % 10);
        while ((value /= 10) != 0);
        while (n > 0 && size_ < sizeof bytes_ - 1) bytes_[size_++] = digits[--n];
    }
    void write_to(int fd) {
        bytes_[size_] = '\n';
        [[maybe_unused]] const auto n = ::write(fd, bytes_, size_ + 1);
    }

private:
    char bytes_[512];
    std::size_t size_ = 0;
};

std::uintptr_t program_counter([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
    return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
    return 0;
#endif
}

/// The instance whose code lies at `address`; null too when several instances share the library.
const char* owner_of(std::uintptr_t address) {
    const char* found = nullptr;
    const auto count = range_count.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
        if (address < ranges[i].begin.load(std::memory_order_relaxed) || address >= ranges[i].end.load(std::memory_order_relaxed))
            continue;
        const char* instance = ranges[i].instance.load(std::memory_order_relaxed);
        if (found && found != instance) return nullptr;
        found = instance;
    }
    return found;
}

/// A thread that a plugin made inherits the name of the lane or worker that made it: the instance's, cut to 15 bytes.
const char* owner_by_thread_name() {
    char name[16] = {};
    if (::prctl(PR_GET_NAME, name) != 0) return nullptr;
    const char* found = nullptr;
    const auto count = range_count.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
        const char* instance = ranges[i].instance.load(std::memory_order_relaxed);
        if (std::strncmp(name, instance, 15) != 0) continue;
        if (found && found != instance) return nullptr; // two that begin alike
        found = instance;
    }
    return found;
}

void record(const char* cause, const char* instance, const char* what) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    if (const int fd = crash_file.load(std::memory_order_relaxed); fd >= 0) {
        line entry;
        entry.number(now.tv_sec * 1'000'000'000LL + now.tv_nsec);
        entry.text(" ");
        entry.text(cause);
        entry.text(" ");
        entry.text(instance);
        entry.text(" ");
        entry.text(what);
        entry.write_to(fd);
    }
    line message;
    message.text("gantry: plugin ");
    message.text(instance);
    message.text(" ended the node by ");
    message.text(cause);
    message.text(" in ");
    message.text(what);
    message.write_to(STDERR_FILENO);
}

void on_crash(int signal, siginfo_t*, void* context) {
    const auto& call = current_call::get();
    const char* instance = call.instance;
    const char* what = call.what;
    if (!instance) {
        instance = owner_of(program_counter(context));
        if (!instance) instance = owner_by_thread_name();
        what = "own-thread";
    }
    if (instance) record(name_of(signal), instance, what);
    ::sigaction(signal, &before[static_cast<std::size_t>(signal)], nullptr);
    ::raise(signal); // delivered to whoever was there before, once this handler returns
}

void on_exit() {
    const auto& call = current_call::get();
    if (!call.instance) return;
    record("exit", call.instance, call.what);
    ::_exit(EXIT_FAILURE); // other threads still run plugin code: static destructors would pull the ground away under them
}

void on_fork_in_parent() {
    if (current_call::get().instance) ++forks;
}

void on_fork_in_child() {
    const auto& call = current_call::get();
    if (!call.instance) return;
    line message;
    message.text("gantry: plugin ");
    message.text(call.instance);
    message.text(" called fork() in ");
    message.text(call.what);
    message.text(", which may deadlock: the child is ended; plugins start helpers by gantry.exec/1");
    message.write_to(STDERR_FILENO);
    ::_exit(127);
}

} // namespace

void set_crash_file(base::unique_fd fd) {
    // Stored before the old one closes: a handler must never write to a number that became another file.
    base::unique_fd old(crash_file.exchange(fd.release()));
}

void watch_crashes() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action {};
        action.sa_sigaction = on_crash;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        ::sigemptyset(&action.sa_mask);
        for (const int signal : crash_signals) ::sigaction(signal, &action, &before[static_cast<std::size_t>(signal)]);
        std::atexit(on_exit);
        ::pthread_atfork(nullptr, on_fork_in_parent, on_fork_in_child);
    });
}

void attribute_code(const void* begin, const void* end, const char* instance) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const auto i = range_count.load(std::memory_order_relaxed);
    if (i == ranges.size()) return; // crashes of later libraries are attributed by thread only
    ranges[i].begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_relaxed);
    ranges[i].end.store(reinterpret_cast<std::uintptr_t>(end), std::memory_order_relaxed);
    ranges[i].instance.store(instance, std::memory_order_relaxed);
    range_count.store(i + 1, std::memory_order_release);
}

unsigned forks_of_this_thread() noexcept { return forks; }

} // namespace gantry::core
