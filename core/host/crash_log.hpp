// Finds out which plugin ended the process: a mark on disk while one is loaded, a record that a signal handler writes when
// plugin code crashes or calls exit(), and the quarantine that the next start draws from both.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// Files below DIR: loading, crashes, quarantine/INSTANCE. Blocking, small, on local storage; used from the core loop only
/// at start and from lanes.
class crash_log {
public:
    /// Makes DIR and opens the crash log for this process's signal handlers. One at a time in a process.
    static result<std::unique_ptr<crash_log>> open(const std::string& dir);
    ~crash_log();

    /// Judges what earlier runs left, extends the quarantine and returns it: instance -> reason.
    result<std::map<std::string, std::string>> judge();
    result<void> mark_loading(const std::string& instance, const std::string& id, const std::string& sha256);
    void clear_loading();
    /// Lifts the quarantine of an instance; success when there is none.
    result<void> lift(const std::string& instance);

private:
    explicit crash_log(std::string dir) : dir_(std::move(dir)) {}
    std::string dir_;
};

/// Handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT, for exit() and for fork(): they act only on threads that run
/// plugin code, or when the faulting instruction lies in a plugin. Installed once for the process's life.
void watch_crashes();

/// Code between begin and end belongs to `instance` (interned). At most 1024 ranges.
void attribute_code(const void* begin, const void* end, const char* instance);

/// How often plugin code on this thread has called fork() so far.
unsigned forks_of_this_thread() noexcept;

} // namespace gantry::core
