// What the supervisor holds for its pod: namespaces, the pinned network namespace, /dev/shm, the shared PID namespace.
#pragma once

#include "plugins/cri-native/supervisor/server.hpp"
#include "plugins/cri-native/supervisor/sys.hpp"
#include "plugins/cri-native/supervisor/text.hpp"

namespace gantry::cri_native::supervisor {

class sandbox_state {
public:
    /// Executes the sandbox plan in plan_fd. What fails is kept for the first hello: failed().
    /// `in_cgroup_v2`: born in the plan's v2 cgroup.
    void set_up(int plan_fd, int run_dir_fd, bool in_cgroup_v2) noexcept;

    bool failed() const noexcept { return step_ != step::none; }
    void reply_failure_to(const requester& to) const noexcept;

    text run_dir() const noexcept { return run_dir_; }
    int run_dir_fd() const noexcept { return run_dir_fd_; }
    /// pidfd of the shared PID namespace's first process, -1 if each container has its own.
    int pod_init() const noexcept { return pod_init_.get(); }
    pid_t pod_init_pid() const noexcept { return pod_init_pid_; }

private:
    bool fail(step at, text object = {}, const char* detail = "") noexcept;
    bool execute(int plan_fd, bool in_cgroup_v2) noexcept;
    bool own_namespaces(std::uint32_t flags) noexcept;
    bool apply_sysctls(const class plan_view& plan) noexcept;
    bool pin_network() noexcept;
    bool mount_shm(std::uint64_t bytes) noexcept;
    bool start_pod_init() noexcept;

    path_line run_dir_;
    int run_dir_fd_ = -1;
    sys::fd pod_init_;
    pid_t pod_init_pid_ = 0;
    step step_ = step::none;
    int err_ = 0;
    line<600> object_;
    const char* detail_ = "";
};

sandbox_state& sandbox() noexcept;

} // namespace gantry::cri_native::supervisor
