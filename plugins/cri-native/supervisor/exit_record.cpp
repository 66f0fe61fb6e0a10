// exits/ID in the run directory: how a container ended, for a plugin process that was not there.
#include <cstdio>

#include "plugins/cri-native/supervisor/container.hpp"
#include "plugins/cri-native/supervisor/sandbox.hpp"

namespace gantry::cri_native::supervisor {

void write_exit_record(const container& c) noexcept {
    line<512> record;
    record.add("id=").add(c.id);
    record.add("\ncreated=").number(static_cast<std::uint64_t>(c.created_ns));
    record.add("\nstarted=").number(static_cast<std::uint64_t>(c.started_ns));
    record.add("\nfinished=").number(static_cast<std::uint64_t>(c.finished_ns));
    record.add("\ncode=").number(static_cast<std::uint64_t>(c.exit_code));
    record.add("\nsignal=").number(static_cast<std::uint64_t>(c.exit_signal));
    record.add("\noom=").number(c.oom_killed ? 1 : 0);
    record.add("\ndropped=").number(c.log.dropped());
    record.add("\n");
    line<wire::max_id + 16> name;
    name.add("exits/").add(c.id);
    line<wire::max_id + 16> draft;
    draft.add("exits/.").add(c.id);
    const int dir = sandbox().run_dir_fd();
    // A full run directory costs the record, not the event: the supervisor still knows.
    {
        const sys::fd file(::openat(dir, draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file) return;
        const ssize_t n = sys::retry([&] { return ::write(file.get(), record.c_str(), record.size()); });
        if (n != static_cast<ssize_t>(record.size())) {
            ::unlinkat(dir, draft.c_str(), 0);
            return;
        }
    }
    ::renameat(dir, draft.c_str(), dir, name.c_str());
}

void remove_exit_record(const container& c) noexcept {
    line<wire::max_id + 16> name;
    name.add("exits/").add(c.id);
    ::unlinkat(sandbox().run_dir_fd(), name.c_str(), 0);
}

} // namespace gantry::cri_native::supervisor
