#include "plugins/common/netlink/netns.hpp"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <system_error>
#include <thread>

namespace gantry::netlink {

namespace {

result<void> enter(int netns) {
    if (::setns(netns, CLONE_NEWNET) == 0) return {};
    error e = sys_error("enter the network namespace", errno);
    if (e.sys_errno == EINVAL) e.message += "; the descriptor is not a network namespace";
    return e;
}

} // namespace

result<void> run_in_netns(int netns, const std::function<result<void>()>& fn) {
    result<void> outcome;
    try {
        std::thread([&] {
            outcome = enter(netns);
            if (outcome) outcome = fn();
        }).join();
    } catch (const std::system_error& fault) {
        return sys_error("start a thread to enter the network namespace", fault.code().value());
    }
    return outcome;
}

result<netns_visitor> netns_visitor::here() {
    base::unique_fd home(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!home) return sys_error("open /proc/thread-self/ns/net", errno);
    return netns_visitor(std::move(home));
}

result<void> netns_visitor::is_home() const {
    if (lost_ == 0) return {};
    return sys_error("this thread could not come back from a pod's network namespace; restart it", lost_);
}

result<void> netns_visitor::run(int netns, const std::function<result<void>()>& fn) {
    GANTRY_CHECK(is_home());
    GANTRY_CHECK(enter(netns));
    auto outcome = fn();
    if (::setns(home_.get(), CLONE_NEWNET) != 0) lost_ = errno;
    GANTRY_CHECK(is_home());
    return outcome;
}

} // namespace gantry::netlink
