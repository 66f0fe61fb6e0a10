// What a child of the supervisor carries between clone and execve, and how it reports.
#pragma once

#include "plugins/cri-native/launch/wire.hpp"
#include "plugins/cri-native/supervisor/plan_view.hpp"
#include "plugins/cri-native/supervisor/sys.hpp"
#include "plugins/cri-native/supervisor/text.hpp"

namespace gantry::cri_native::supervisor {

namespace wire = launch::wire;
using wire::step;

/// One message of a child, on its status socket; a terminal's master may come with `ready`.
struct child_report {
    enum kind : std::uint32_t { ready = 1, failed = 2 };
    std::uint32_t what;
    std::uint32_t step;
    std::int32_t err;
    char object[600];
    char detail[400];
};

/// The child's side. It lives in a copy of the supervisor's memory: nothing needs to be freed, and a failure ends it.
struct child {
    int status = -1; ///< socket to the supervisor, close-on-exec: its end of file tells that execve succeeded
    int proc = -1;   ///< the host's /proc, proven (3.2 step 7)
    plan_view plan;
    text run_dir;

    [[noreturn]] void fail(step at, int err, text object = {}, text detail = {}) const noexcept;
    [[noreturn]] void fail(step at, int err, const char* object) const noexcept;
    /// Tells that the set-up is done, handing over the terminal's master unless -1.
    void report_ready(int tty_master) const noexcept;
    /// Created, not started: blocks until the supervisor says go. (3.2 step 15)
    void wait_at_gate() const noexcept;
};

/// Opens /proc of the host's mount namespace and proves it: procfs, and its root. -1 with errno.
int open_trusted_proc() noexcept;
/// Writes below a proven procfs without following links or leaving it. (CVE-2025-52881.)
bool write_proc(int proc, const char* path, const char* value, std::size_t size) noexcept;

} // namespace gantry::cri_native::supervisor
