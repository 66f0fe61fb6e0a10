#include "core/host/threads.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstddef>

namespace gantry::core {

namespace {

/// sigaltstack(2) memory for the life of the thread; untouched pages cost nothing.
class signal_stack {
public:
    signal_stack() {
        memory_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory_ == MAP_FAILED) return;
        const stack_t stack{.ss_sp = memory_, .ss_flags = 0, .ss_size = size};
        ::sigaltstack(&stack, nullptr);
    }
    ~signal_stack() {
        if (memory_ == MAP_FAILED) return;
        const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
        ::sigaltstack(&none, nullptr);
        ::munmap(memory_, size);
    }
    signal_stack(const signal_stack&) = delete;
    signal_stack& operator=(const signal_stack&) = delete;

private:
    static constexpr std::size_t size = 64 * 1024;
    void* memory_;
};

} // namespace

std::thread start_thread(const std::string& name, std::function<void()> body) {
    sigset_t blocked, before;
    ::sigfillset(&blocked);
    for (const int synchronous : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) ::sigdelset(&blocked, synchronous);
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before); // inherited, so that no signal arrives before the thread blocks it
    std::thread thread([name = name.substr(0, 15), body = std::move(body)] {
        ::pthread_setname_np(::pthread_self(), name.c_str());
        const signal_stack stack;
        body();
    });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
}

} // namespace gantry::core
