// The steps taken for each pod: which plugin did what, when, for how long, with which outcome. Feeds `gantry explain`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// A mark that a plugin set inside an op (gantry.trace/1).
struct trace_step {
    std::string name{};
    std::chrono::nanoseconds at{}; ///< since the op was submitted
};

struct op_step {
    std::uint64_t id = 0;     ///< of the op
    std::string plugin{};     ///< instance
    std::string capability{};
    std::string op{};
    std::string caller{};     ///< instance whose op called this one as a peer; empty for the core
    std::chrono::system_clock::time_point started{};
    std::chrono::nanoseconds duration{}; ///< so far, while open
    bool open = true;
    gantry::code code = gantry::code::ok;
    std::string message{};    ///< of the error
    std::string progress{};   ///< latest progress, for people; empty if none was reported
    std::vector<trace_step> steps{};
};

/// Bounded: the last 64 finished steps of each of the 1024 pods touched last, and what is open. [any]
class op_journal {
public:
    void opened(const std::string& pod_uid, op_step step);
    /// Marks an open op. Unknown ids are ignored.
    void traced(const std::string& pod_uid, std::uint64_t id, trace_step step);
    void progressed(const std::string& pod_uid, std::uint64_t id, std::string progress);
    void closed(const std::string& pod_uid, std::uint64_t id, std::chrono::nanoseconds duration, gantry::code code,
                std::string message);
    void forget(const std::string& pod_uid);

    /// The pod's steps in the order they were submitted; open ones carry their duration so far.
    std::vector<op_step> steps(const std::string& pod_uid) const;

private:
    struct pod_steps {
        std::list<op_step> steps;
        std::list<std::string>::iterator age;
    };
    op_step* find(const std::string& pod_uid, std::uint64_t id);

    mutable std::mutex mutex_;
    std::map<std::string, pod_steps> pods_;
    std::list<std::string> by_age_; ///< least recently touched first
};

} // namespace gantry::core
