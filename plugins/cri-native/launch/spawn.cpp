#include "plugins/cri-native/launch/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

namespace gantry::cri_native::launch {

namespace {

// In the supervisor: what main.cpp expects, then the image itself, which it closes first.
enum inherited { listening_fd = 3, run_dir_fd = 4, plan_fd = 5, image_fd = 6 };
constexpr int backlog = 4;

// Out of the way of the numbers above, so that no dup2 in the child overwrites another's source.
result<base::unique_fd> moved_up(int fd) {
    constexpr int above = image_fd + 1;
    base::unique_fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, above));
    if (!copy) return sys_error("dup", errno);
    return copy;
}

result<base::unique_fd> open_dir(const std::string& path) {
    base::unique_fd dir(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
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

struct spawn_settings {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;

    spawn_settings() {
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawnattr_init(&attributes);
    }
    ~spawn_settings() {
        ::posix_spawn_file_actions_destroy(&actions);
        ::posix_spawnattr_destroy(&attributes);
    }
    spawn_settings(const spawn_settings&) = delete;
    spawn_settings& operator=(const spawn_settings&) = delete;
};

} // namespace

result<pid_t> spawn_supervisor(int image, const std::string& run_dir, int plan) {
    if (auto living = connect_supervisor(run_dir))
        return error{.code = code::exists, .message = "a supervisor already listens in " + run_dir};
    GANTRY_TRY(const auto dir, open_dir(run_dir));
    GANTRY_TRY(const auto listening, listen_in(dir.get(), run_dir));
    GANTRY_TRY(const auto high_dir, moved_up(dir.get()));
    GANTRY_TRY(const auto high_listening, moved_up(listening.get()));
    GANTRY_TRY(const auto high_plan, moved_up(plan));
    GANTRY_TRY(const auto high_image, moved_up(image));

    spawn_settings s;
    for (int fd = 0; fd < 3; ++fd) ::posix_spawn_file_actions_addopen(&s.actions, fd, "/dev/null", O_RDWR, 0);
    ::posix_spawn_file_actions_adddup2(&s.actions, high_listening.get(), listening_fd);
    ::posix_spawn_file_actions_adddup2(&s.actions, high_dir.get(), run_dir_fd);
    ::posix_spawn_file_actions_adddup2(&s.actions, high_plan.get(), plan_fd);
    ::posix_spawn_file_actions_adddup2(&s.actions, high_image.get(), image_fd);
    ::posix_spawn_file_actions_addclosefrom_np(&s.actions, image_fd + 1);
    sigset_t signals;
    ::sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&s.attributes, &signals);
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&s.attributes, &signals);
    ::posix_spawnattr_setflags(&s.attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);

    char name[] = "gantry-supervisor";
    char* const argv[] = {name, nullptr};
    char* const environment[] = {nullptr};
    const std::string program = "/proc/self/fd/" + std::to_string(image_fd);
    pid_t pid = -1;
    if (const int err = ::posix_spawn(&pid, program.c_str(), &s.actions, &s.attributes, argv, environment); err != 0)
        return sys_error("spawn the supervisor of " + run_dir, err);
    return pid;
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
