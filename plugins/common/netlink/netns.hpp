// Work inside another network namespace.
#pragma once

#include <functional>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::netlink {

/// Runs fn on a thread made for this that enters `netns` and ends with fn, so no thread that serves anything else is
/// ever inside, or left inside, a pod. [any, blocks until fn has returned]
result<void> run_in_netns(int netns, const std::function<result<void>()>& fn);

/// The same without a thread's price, for a thread that its user made and owns: it enters, and comes back.
class netns_visitor {
public:
    /// The calling thread's namespace is home.
    static result<netns_visitor> here();

    result<void> run(int netns, const std::function<result<void>()>& fn);
    /// An error once the thread could not come back: it must not act for the host any more.
    result<void> is_home() const;

private:
    explicit netns_visitor(base::unique_fd home) noexcept : home_(std::move(home)) {}
    base::unique_fd home_;
    int lost_ = 0; ///< errno of the way back
};

} // namespace gantry::netlink
