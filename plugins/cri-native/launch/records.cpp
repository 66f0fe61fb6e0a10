// What a sandbox leaves in its run directory, with or without a supervisor.
#include <fcntl.h>
#include <sys/mount.h>

#include <charconv>

#include "base/files.hpp"
#include "plugins/cri-native/launch/client.hpp"
#include "plugins/cri-native/launch/codec.hpp"

namespace gantry::cri_native::launch {

namespace {

constexpr std::size_t max_record = 4096;

std::int64_t value_of(std::string_view record, std::string_view key) {
    std::int64_t value = 0;
    for (std::size_t at = 0; at < record.size();) {
        const auto end = std::min(record.find('\n', at), record.size());
        const auto pair = record.substr(at, end - at);
        if (pair.starts_with(key) && pair.size() > key.size() && pair[key.size()] == '=')
            std::from_chars(pair.data() + key.size() + 1, pair.data() + pair.size(), value);
        at = end + 1;
    }
    return value;
}

container_info parse_record(const std::string& id, std::string_view record) {
    container_info info;
    info.id = id;
    info.state = container_state::exited;
    info.created_ns = value_of(record, "created");
    info.started_ns = value_of(record, "started");
    info.finished_ns = value_of(record, "finished");
    info.exit_code = static_cast<int>(value_of(record, "code"));
    info.exit_signal = static_cast<int>(value_of(record, "signal"));
    info.oom_killed = value_of(record, "oom") != 0;
    info.log_dropped = static_cast<std::uint64_t>(value_of(record, "dropped"));
    return info;
}

result<void> unmount(const std::string& path) {
    // More than once: a start that was killed half-way and repeated may have mounted twice.
    while (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
    }
    if (errno == EINVAL || errno == ENOENT) return {};
    return sys_error("umount " + path, errno);
}

} // namespace

result<base::unique_fd> open_netns(const std::string& run_dir) {
    const std::string path = run_dir + "/ns/net";
    base::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return sys_error("open " + path, errno);
    return fd;
}

result<std::vector<container_info>> read_exit_records(const std::string& run_dir) {
    std::vector<container_info> all;
    GANTRY_TRY(const auto names, base::list_dir(run_dir + "/exits"));
    for (const auto& name : names) {
        if (!valid_id(name)) continue; // a draft
        auto record = base::read_file(run_dir + "/exits/" + name, max_record);
        if (!record && record.error().code == code::not_found) continue;
        if (!record) return std::move(record).error();
        all.push_back(parse_record(name, *record));
    }
    return all;
}

result<void> remove_sandbox(const std::string& run_dir) {
    GANTRY_CHECK(unmount(run_dir + "/ns/net"));
    GANTRY_CHECK(unmount(run_dir + "/shm"));
    return base::remove_tree(run_dir);
}

} // namespace gantry::cri_native::launch
