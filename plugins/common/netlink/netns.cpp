#include "plugins/common/netlink/netns.hpp"

#include <sched.h>

#include <cerrno>
#include <system_error>
#include <thread>

namespace gantry::netlink {

result<void> run_in_netns(int netns, const std::function<result<void>()>& fn) {
    result<void> outcome;
    try {
        std::thread([&] {
            if (::setns(netns, CLONE_NEWNET) == 0) {
                outcome = fn();
                return;
            }
            error e = sys_error("enter the network namespace", errno);
            if (e.sys_errno == EINVAL) e.message += "; the descriptor is not a network namespace";
            outcome = std::move(e);
        }).join();
    } catch (const std::system_error& fault) {
        return sys_error("start a thread to enter the network namespace", fault.code().value());
    }
    return outcome;
}

} // namespace gantry::netlink
