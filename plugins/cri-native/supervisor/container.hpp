// The containers of the pod: their states, streams and ends.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "plugins/cri-native/supervisor/log_file.hpp"
#include "plugins/cri-native/supervisor/loop.hpp"
#include "plugins/cri-native/supervisor/plan_view.hpp"
#include "plugins/cri-native/supervisor/relay.hpp"
#include "plugins/cri-native/supervisor/server.hpp"

namespace gantry::cri_native::supervisor {

// As launch::container_state; the values are wire format.
enum class container_state : std::uint32_t { creating = 1, created = 2, starting = 3, running = 4, exited = 5 };
// As launch::pid_mode.
enum class pid_mode : std::uint32_t { container = 0, pod = 1, host = 2 };

struct container;

/// One output of a container on its way to the log and to whoever is attached.
struct output {
    container* owner = nullptr;
    const char* name = "";
    watcher watch;
    partial_line partial;

    bool open() const noexcept { return watch.open(); }
};

/// A client on a container's streams.
struct attachment {
    attachment* previous = nullptr;
    attachment* next = nullptr;
    container* owner = nullptr;
    requester client;
    bool wants_output = false;
    sink out;
    sink err;
    pump in;
};

struct container {
    container* previous = nullptr;
    container* next = nullptr;
    line<wire::max_id + 1> id;
    path_line log_path;
    container_state state = container_state::creating;
    pid_t pid = 0;
    sys::fd pidfd;
    sys::fd mounts; ///< its mount namespace, so that its end need not wait for the unmounting
    std::int64_t created_ns = 0;
    std::int64_t started_ns = 0;
    std::int64_t finished_ns = 0;
    int exit_code = 0;
    int exit_signal = 0;
    bool oom_killed = false;
    bool killed = false;    ///< by us: then an earlier OOM kill in its cgroup was not its end
    bool ended = false;     ///< the first process was reaped
    bool announced = false; ///< record written, event sent
    std::uint64_t oom_before = 0;
    std::int64_t drain_deadline = 0;
    watcher status;
    requester waiting; ///< for the reply to create or start
    pid_mode pid_ns = pid_mode::container;
    std::uint32_t flags = 0; ///< wire::container_flag
    bool tty = false;
    log_file log;
    output out;
    output err;
    sys::fd stdin_end;
    list<attachment> attachments;
    plan_view cgroups; ///< the plan's cgroup records, kept
    char* kept = nullptr;
    std::size_t kept_size = 0;

    text oom_file() const noexcept;
};

container* find_container(text id) noexcept;

void create_container(request& r) noexcept;
void start_container(container& c, const requester& from) noexcept;
void signal_container(container& c, int signal) noexcept;
/// Only when exited.
void forget_container(container& c) noexcept;
bool any_alive() noexcept;
void kill_all() noexcept;

/// A child was reaped: true if it was the first process of a container.
bool container_ended(pid_t pid, int code, int signal) noexcept;
/// Both outputs are at their end or given up: record, then event.
void announce_exit_when_drained(container& c) noexcept;

void append_container(message& m, const container& c) noexcept;
void list_containers(const requester& to) noexcept;

// streams.cpp
void watch_outputs(container& c, int out, int err) noexcept; ///< takes the descriptors; -1 for none
void drain_outputs(container& c) noexcept;                   ///< what is there now, without waiting
void close_outputs(container& c) noexcept;
void attach(container& c, request& r, std::uint32_t flags) noexcept;
void end_attachments(container& c) noexcept;
std::int64_t attachments_deadline(const container& c) noexcept;
void expire_attachments(container& c, std::int64_t now) noexcept;

// exit_record.cpp
void write_exit_record(const container& c) noexcept;
void remove_exit_record(const container& c) noexcept;

std::int64_t containers_deadline() noexcept;
void expire_containers(std::int64_t now) noexcept;

} // namespace gantry::cri_native::supervisor
