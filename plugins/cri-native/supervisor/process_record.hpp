// The plan's process record, decoded.
#pragma once

#include "plugins/cri-native/supervisor/plan_view.hpp"
#include "plugins/cri-native/supervisor/text.hpp"

namespace gantry::cri_native::supervisor {

struct process_record {
    explicit process_record(const plan_view& plan) noexcept {
        wire::fields f = plan.first(wire::tag::process);
        cwd = f.text();
        uid = f.u32();
        gid = f.u32();
        umask = f.u32();
        capabilities = f.u64();
        flags = f.u32();
        oom_score_adj = f.i32();
        columns = f.u32();
        rows = f.u32();
        search_path = f.text();
    }
    bool tty() const noexcept { return (flags & wire::process_tty) != 0; }
    bool no_new_privs() const noexcept { return (flags & wire::process_no_new_privs) != 0; }
    bool sets_oom_score_adj() const noexcept { return (flags & wire::process_oom_score_adj) != 0; }

    text cwd;
    std::uint32_t uid;
    std::uint32_t gid;
    std::uint32_t umask;
    std::uint64_t capabilities;
    std::uint32_t flags;
    std::int32_t oom_score_adj;
    std::uint32_t columns;
    std::uint32_t rows;
    text search_path; ///< PATH of the final environment
};

} // namespace gantry::cri_native::supervisor
