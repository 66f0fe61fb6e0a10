// A cgroup for each helper process, so that its whole tree can be killed, whatever sessions and process groups it made.
// cgroup v2 where it is mounted (also beside v1), else the pids or freezer hierarchy of v1 (cgroups(7)).
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// The cgroup of one helper. Removed, with everything in it killed, at the end of its life.
class helper_group {
public:
    helper_group(std::string path, base::unique_fd procs) : path_(std::move(path)), procs_(std::move(procs)) {}
    helper_group(const helper_group&) = delete;
    helper_group& operator=(const helper_group&) = delete;

    /// A process that writes "0" here joins.
    int procs_fd() const noexcept { return procs_.get(); }
    /// SIGKILL to every process in it. [any]
    void kill() const;
    /// Removes the empty cgroup; false while processes are still on their way out.
    bool remove();

private:
    std::string path_;
    base::unique_fd procs_;
};

/// MOUNT/gantry-INSTANCE/helpers: where the helpers of one node live.
class helper_groups {
public:
    /// Kills and removes what an earlier run left there. Without a usable cgroup hierarchy the error says why.
    static result<std::unique_ptr<helper_groups>> open(const std::string& node_instance);
    ~helper_groups() { leave(); }
    /// Removes the directory if it is empty.
    void leave() const;

    result<std::unique_ptr<helper_group>> create(const std::string& name);

private:
    explicit helper_groups(std::string dir) : dir_(std::move(dir)) {}
    std::string dir_;
};

} // namespace gantry::core
