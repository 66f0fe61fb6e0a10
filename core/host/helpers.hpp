// The helper processes of one instance: started, reaped on the lane, killed with all their children at their deadline.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/host/alarm_clock.hpp"
#include "core/host/helper_group.hpp"
#include "core/host/lane.hpp"
#include "core/host/spawn.hpp"

namespace gantry::core {

class helpers {
public:
    /// wait_status as of waitpid(2).
    using exit_fn = std::function<void(int wait_status, bool timed_out)>;

    /// groups may be null: then a helper is killed by process group.
    helpers(std::string instance, lane& lane, alarm_clock& alarms, helper_groups* groups)
        : instance_(std::move(instance)), lane_(lane), alarms_(alarms), groups_(groups) {}
    ~helpers();

    /// on_exit runs once, on the lane. [any]
    result<pid_t> spawn(helper_program program, std::chrono::steady_clock::time_point deadline, exit_fn on_exit);
    /// [any]
    void kill(pid_t pid);
    /// Kills all and reaps what ends until the deadline; their exit functions never run. [lane]
    void stop(std::chrono::steady_clock::time_point deadline);

private:
    struct running {
        pid_t pid;
        base::unique_fd pidfd;
        std::shared_ptr<helper_group> group; ///< null without cgroups
        std::uint64_t alarm = 0;
        std::uint64_t watch = 0;
        bool timed_out = false;
        exit_fn on_exit;
    };
    void kill_tree(const running& helper) const;
    void expire(pid_t pid);
    void reap(pid_t pid);
    void remove_later(std::shared_ptr<helper_group> group, int tries_left);

    const std::string instance_;
    lane& lane_;
    alarm_clock& alarms_;
    helper_groups* const groups_;
    std::mutex mutex_;
    std::map<pid_t, running> running_;
    std::uint64_t started_ = 0;
};

} // namespace gantry::core
