// Which plugin's code the present thread runs: for logs, fault attribution, and the crash record, which a signal handler
// reads. The strings live as long as the process.
#pragma once

#include <cstdint>

namespace gantry::core {

struct current_call {
    const char* instance = nullptr; ///< null: no plugin code
    const char* what = nullptr;     ///< "init", "add", "timer"
    std::uint64_t op = 0;           ///< operation on whose behalf the code runs, 0 for none

    static const current_call& get() noexcept;
};

/// Marks the present thread for the life of the scope; scopes nest.
class call_scope {
public:
    call_scope(const char* instance, const char* what, std::uint64_t op) noexcept;
    ~call_scope();
    call_scope(const call_scope&) = delete;
    call_scope& operator=(const call_scope&) = delete;

private:
    current_call before_;
};

/// A copy of text that lives as long as the process; equal texts share one.
const char* interned(const char* text);

} // namespace gantry::core
