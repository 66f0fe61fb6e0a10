// What a plugin must leave as it found it on a thread of the host: namespaces, signal mask, umask, working directory,
// environment. Finds a change after the call that made it and puts it right, so that the next call runs in order.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace gantry::core {

struct hygiene_fault {
    const char* kind; ///< "netns_changed"
    std::string what;
};

/// Belongs to one thread: construct and use it there.
class hygiene_check {
public:
    hygiene_check();

    /// Every check, about 15 µs.
    std::vector<hygiene_fault> all();
    /// The same, unless the last one was less than 100 ms ago: on a busy lane a change is found at the latest then.
    std::vector<hygiene_fault> sampled(std::chrono::steady_clock::time_point now);

private:
    void check_namespaces(std::vector<hygiene_fault>& out);
    void check_signals(std::vector<hygiene_fault>& out);
    void check_process(std::vector<hygiene_fault>& out);

    struct ns {
        const char* file;
        const char* kind;
        std::string name; ///< "net:[4026531840]"
        base::unique_fd fd;
    };
    base::unique_fd directory_;
    std::vector<ns> namespaces_;
    sigset_t mask_;
    base::unique_fd cwd_;
    dev_t cwd_device_ = 0;
    ino_t cwd_inode_ = 0;
    mode_t umask_ = 022;
    std::chrono::steady_clock::time_point checked_{};
};

} // namespace gantry::core
