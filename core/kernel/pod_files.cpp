#include "core/kernel/pod_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/files.hpp"
#include "base/unique_fd.hpp"

namespace gantry::core {

std::string pod_dir(const std::string& state_dir, const std::string& uid) { return state_dir + "/pods/" + uid; }

std::string hosts_path(const std::string& state_dir, const std::string& uid) {
    return pod_dir(state_dir, uid) + "/etc-hosts";
}

std::string termination_path(const std::string& state_dir, const std::string& uid, const std::string& container,
                             std::uint32_t attempt) {
    return pod_dir(state_dir, uid) + "/containers/" + container + "/" + std::to_string(attempt);
}

result<void> make_termination_file(const std::string& path) {
    GANTRY_CHECK(base::make_dirs(path.substr(0, path.find_last_of('/')), 0755));
    const base::unique_fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!fd) return sys_error("open " + path, errno);
    // Past the umask: the program may run as anybody.
    if (::fchmod(fd.get(), 0666) != 0) return sys_error("fchmod " + path, errno);
    return {};
}

std::string read_tail(const std::string& path, std::size_t limit) {
    const base::unique_fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
    std::string out(std::min<std::size_t>(limit, static_cast<std::size_t>(info.st_size)), '\0');
    const auto got = ::pread(fd.get(), out.data(), out.size(), info.st_size - static_cast<off_t>(out.size()));
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return out;
}

} // namespace gantry::core
