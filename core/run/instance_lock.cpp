#include "core/run/instance_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include "base/files.hpp"

namespace gantry::core {

result<base::unique_fd> lock_instance(const std::string& run_root) {
    GANTRY_CHECK(base::make_dirs(run_root));
    const std::string path = run_root + "/lock";
    base::unique_fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd) return sys_error("open " + path, errno);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return sys_error("lock " + path, errno);
        const auto holder = base::read_file(path, 64);
        return error{.code = code::exists,
                     .message = "this node instance runs already (pid " + (holder && !holder->empty() ? *holder : "unknown") + ", lock " +
                                path + "); stop it, or set another node.instance"};
    }
    const std::string pid = std::to_string(::getpid());
    if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) return sys_error("write " + path, errno);
    return fd;
}

} // namespace gantry::core
