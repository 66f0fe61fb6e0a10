#include "plugins/cri-native/launch/spawn.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <iterator>

#include "plugins/cri-native/launch/codec.hpp"
#include "plugins/cri-native/launch/memfd.hpp"

namespace gantry::cri_native::launch {

namespace {

constexpr int backlog = 4;

// The argument says that the kernel put the supervisor into its v2 cgroup already.
char supervisor_name[] = "gantry-supervisor";
char in_cgroup[] = "in-cgroup";
char* const born_in_cgroup[] = {supervisor_name, in_cgroup, nullptr};
char* const joins_cgroup[] = {supervisor_name, nullptr};
char* const no_environment[] = {nullptr};

// Out of the way of the child's numbers, so that no dup2 there overwrites another's source.
result<base::unique_fd> moved_up(int fd, int above) {
    base::unique_fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, above));
    if (!copy) return sys_error("dup", errno);
    return copy;
}

result<base::unique_fd> open_null() {
    base::unique_fd fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!fd) return sys_error("open /dev/null", errno);
    return fd;
}

result<base::unique_fd> open_dir(const std::string& path, int access = O_PATH) {
    base::unique_fd dir(::open(path.c_str(), access | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!dir) return sys_error("open " + path, errno);
    return dir;
}

// Through the directory's descriptor: run directories are longer than sun_path.
sockaddr_un address_in(int dir) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = "/proc/self/fd/" + std::to_string(dir) + "/" + socket_name;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

result<base::unique_fd> make_socket() {
    base::unique_fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket) return sys_error("socket", errno);
    return socket;
}

result<base::unique_fd> listen_in(int dir, const std::string& run_dir) {
    GANTRY_TRY(auto socket, make_socket());
    const sockaddr_un address = address_in(dir);
    ::unlinkat(dir, socket_name, 0);
    if (::fchmod(socket.get(), 0600) != 0) return sys_error("chmod socket", errno);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return sys_error("bind " + run_dir + "/" + socket_name, errno);
    if (::listen(socket.get(), backlog) != 0) return sys_error("listen", errno);
    return socket;
}

} // namespace

result<spawned> spawn_supervisor(int image, const sandbox_plan& plan) {
    const std::string& run_dir = plan.run_dir;
    if (auto living = connect_supervisor(run_dir))
        return error{.code = code::exists, .message = "a supervisor already listens in " + run_dir};
    GANTRY_TRY(const auto bytes, encode(plan));
    GANTRY_TRY(const auto memory, make_sealed("sandbox-plan", bytes, memfd_use::data));
    GANTRY_TRY(const auto dir, open_dir(run_dir));
    GANTRY_TRY(const auto listening, listen_in(dir.get(), run_dir));
    GANTRY_TRY(const auto nothing, open_null());
    base::unique_fd cgroup;
    if (!plan.cgroup.v2.empty()) {
        GANTRY_TRY(cgroup, open_dir(plan.cgroup.v2, O_RDONLY));
    }

    const int inherited[] = {nothing.get(), nothing.get(), nothing.get(), listening.get(), dir.get(), memory.get(), image};
    base::unique_fd moved[std::size(inherited)];
    program supervisor{.path = "/proc/self/fd/6", .argv = nullptr, .environment = no_environment};
    for (std::size_t i = 0; i < std::size(inherited); ++i) {
        GANTRY_TRY(moved[i], moved_up(inherited[i], static_cast<int>(std::size(inherited))));
        supervisor.descriptors.push_back(moved[i].get());
    }
    supervisor.argv = cgroup ? born_in_cgroup : joins_cgroup;
    auto child = vfork_exec(supervisor, cgroup.get());
    if (!child && cgroup && child.error().code == code::unsupported) {
        supervisor.argv = joins_cgroup;
        child = vfork_exec(supervisor, -1);
    }
    if (!child) child.error().message = "spawn the supervisor of " + run_dir + ": " + child.error().message;
    return child;
}

result<base::unique_fd> connect_supervisor(const std::string& run_dir) {
    const auto nobody = [&](int err) {
        error e = sys_error("connect to the supervisor in " + run_dir, err);
        e.code = code::unavailable;
        return e;
    };
    auto dir = open_dir(run_dir);
    if (!dir) return nobody(dir.error().sys_errno);
    GANTRY_TRY(auto socket, make_socket());
    const sockaddr_un address = address_in(dir->get());
    const int flags = ::fcntl(socket.get(), F_GETFL);
    ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return nobody(errno);
    return socket;
}

} // namespace gantry::cri_native::launch
