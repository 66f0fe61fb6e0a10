// client: the plugin's end of one pod supervisor. One thread (the plugin's lane) uses it: watch fd() for reading and
// call on_readable(); replies and exits arrive as callbacks from there. Nothing here blocks longer than a process
// spawn.
//
// A client that is destroyed leaves the supervisor and its containers running; connect() finds them again. When the
// supervisor dies every pending callback fails with code::unavailable and events::lost runs once: kill the pod's
// cgroup, then remove_sandbox().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/launch/plan.hpp"

namespace gantry::cri_native::launch {

template <class T>
using callback = std::function<void(result<T>)>;

/// The supervisor program in one sealed memfd; make one per plugin process and keep it. (CVE-2019-5736: nothing that a
/// container can reach through /proc/PID/exe is writable.)
class supervisor_image {
public:
    static result<supervisor_image> make();
    int fd() const noexcept { return fd_.get(); }

private:
    explicit supervisor_image(base::unique_fd fd) : fd_(std::move(fd)) {}
    base::unique_fd fd_;
};

enum class container_state : std::uint8_t { creating = 1, created = 2, starting = 3, running = 4, exited = 5 };

struct container_info {
    std::string id{};
    container_state state = container_state::creating;
    pid_t pid = 0;               ///< in the host's PID namespace; 0 once exited
    std::int64_t created_ns = 0; ///< wall clock, ns since 1970
    std::int64_t started_ns = 0;
    std::int64_t finished_ns = 0;
    int exit_code = 0; ///< exited: the code, or 128 + signal
    int exit_signal = 0;
    bool oom_killed = false;       ///< SIGKILL ended it and its cgroup counted an OOM kill during this run
    std::uint64_t log_dropped = 0; ///< bytes of output that the log could not take (ENOSPC)
};

struct exec_result {
    int exit_code = 0;         ///< the code, or 128 + signal
    bool timed_out = false;    ///< its tree was killed at the deadline
    std::string stdout_data{}; ///< captured only
    std::string stderr_data{};
};

/// Descriptors handed to a process; -1 for none. They are duplicated: the caller keeps its own. For attach and for exec
/// with a terminal they become non-blocking (O_NONBLOCK belongs to the open file, so the caller sees it too).
struct stdio {
    int in = -1;
    int out = -1;
    int err = -1;
};

struct tty_size {
    std::uint16_t columns = 0;
    std::uint16_t rows = 0;
};

class client {
public:
    struct events {
        std::function<void(const container_info&)> exited{}; ///< its exit record is on disk already
        std::function<void(const error&)> lost{};            ///< the supervisor is gone; the client is of no more use
    };

    /// Starts a supervisor. `ready` runs when the pod's namespaces are set up (ns/net is pinned then) or with what
    /// failed.
    static result<std::unique_ptr<client>> spawn(const supervisor_image& image, const sandbox_plan& plan, events on,
                                                 callback<void> ready);
    /// Takes over the supervisor of run_dir, from a plugin process that died. Fails with code::unavailable when none
    /// lives. `ready` gets every container it knows, exited ones included until forget().
    static result<std::unique_ptr<client>> connect(const std::string& run_dir, events on,
                                                   callback<std::vector<container_info>> ready);
    ~client();
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    int fd() const noexcept;                 ///< watch for EPOLLIN
    pid_t pid() const noexcept;              ///< the supervisor's; 0 before ready
    std::uint32_t features() const noexcept; ///< wire::feature bits that the supervisor found, after ready
    void on_readable();

    /// Builds the container up to its start gate: namespaces, root, mounts, cgroup. Nothing of the image runs.
    void create(const container_plan& plan, callback<pid_t> done);
    /// Opens the gate; done when execve succeeded, or with the reason why not (the container is then exited, code 127,
    /// 126 or 128).
    void start(const std::string& id, callback<void> done);
    /// Signals the first process; SIGKILL reaches every process of the container's PID namespace, or its whole cgroup
    /// when it has none of its own.
    void signal(const std::string& id, int signal, callback<void> done);
    /// Drops what is remembered of an exited container, its exit record included.
    void forget(const std::string& id, callback<void> done);
    void list(callback<std::vector<container_info>> done);

    /// Runs a command and captures its output. Done when it ended and both streams are at their end (at most 10 s
    /// later). Returns a handle for exec_signal.
    std::uint32_t exec_captured(const std::string& id, const exec_plan& plan, callback<exec_result> done);
    /// Runs a command on the caller's descriptors. Without tty they become its stdio; with tty the supervisor copies
    /// between them and the terminal (err is not used). Done when it ended and, with tty, its output is through.
    std::uint32_t exec_streams(const std::string& id, const exec_plan& plan, stdio streams, callback<exec_result> done);
    void exec_signal(std::uint32_t exec, int signal); ///< SIGKILL kills the whole tree
    void exec_resize(std::uint32_t exec, tty_size size);

    /// Joins a running container's streams. in is read until its end; out and err get all output from now on. Done when
    /// the container's output ended, `in` ended with no out or err, or the client's ends were closed.
    void attach(const std::string& id, stdio streams, callback<void> done);
    void resize(const std::string& id, tty_size size, callback<void> done);
    /// Continues the log in a new file at the plan's log_path.
    void reopen_log(const std::string& id, callback<void> done);
    /// A socket(2) made inside the pod's network namespace, unconnected: port-forward, probes.
    void socket(int family, int type, callback<base::unique_fd> done);
    /// Ends the supervisor; code::busy while a container lives, unless `force`, which kills them all.
    void shutdown(bool force, callback<void> done);

private:
    struct impl;
    std::uint32_t exec(const std::string& id, const exec_plan& plan, std::uint32_t flags, stdio streams,
                       callback<exec_result> done);
    explicit client(std::unique_ptr<impl> state);
    std::unique_ptr<impl> impl_;
};

/// The pod's pinned network namespace: RUN_DIR/ns/net. Opens also after the supervisor died.
result<base::unique_fd> open_netns(const std::string& run_dir);
/// What exit records say, also without a supervisor. [blocks]
result<std::vector<container_info>> read_exit_records(const std::string& run_dir);
/// Unmounts the pins and removes run_dir with all in it. Idempotent; the supervisor must be gone. [blocks]
result<void> remove_sandbox(const std::string& run_dir);

} // namespace gantry::cri_native::launch
