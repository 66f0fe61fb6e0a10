#include "loopback.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <thread>

#include "gantry/sdk/fd.hpp"

namespace loopback_only {
namespace {

using gantry::error;
using gantry::result;
using gantry::sys_error;
namespace sdk = gantry::sdk;

constexpr int loopback_index = 1; // the kernel gives lo this index in every namespace

/// A route netlink socket inside the namespace. setns changes a thread for good, so a thread of its own makes the socket,
/// which stays in the namespace it was born in; the host's threads must stay in theirs.
result<sdk::fd> route_socket(int netns) {
    std::optional<result<sdk::fd>> made;
    std::thread([&] {
        if (::setns(netns, CLONE_NEWNET) != 0) {
            made.emplace(sys_error("enter the pod's network namespace", errno));
            return;
        }
        const int s = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
        made.emplace(s < 0 ? result<sdk::fd>(sys_error("open a netlink socket in the pod's namespace", errno))
                           : result<sdk::fd>(sdk::fd(s)));
    }).join();
    return *std::move(made);
}

struct link_message {
    nlmsghdr header;
    ifinfomsg link;
};

/// Sends one message about lo and gives the kernel's answer.
result<link_message> ask(int netns, unsigned short type, unsigned short flags, unsigned set_flags) {
    GANTRY_TRY(const auto socket, route_socket(netns));
    link_message out{};
    out.header.nlmsg_len = sizeof(out);
    out.header.nlmsg_type = type;
    out.header.nlmsg_flags = static_cast<unsigned short>(NLM_F_REQUEST | flags);
    out.link.ifi_family = AF_UNSPEC;
    out.link.ifi_index = loopback_index;
    out.link.ifi_flags = set_flags;
    out.link.ifi_change = set_flags;
    if (::send(socket.get(), &out, sizeof(out), 0) < 0) return sys_error("ask the kernel about link lo", errno);

    alignas(nlmsghdr) char answer[8192];
    const auto size = ::recv(socket.get(), answer, sizeof(answer), 0);
    if (size < 0) return sys_error("read the kernel's answer about link lo", errno);
    const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
    if (!NLMSG_OK(header, static_cast<std::size_t>(size))) return error{.message = "link lo: the kernel's answer is cut off"};
    if (header->nlmsg_type == NLMSG_ERROR) {
        const auto* status = static_cast<const nlmsgerr*>(NLMSG_DATA(header));
        if (status->error != 0) return sys_error("change or read link lo", -status->error);
        return out;
    }
    return link_message{*header, *static_cast<const ifinfomsg*>(NLMSG_DATA(header))};
}

} // namespace

result<void> bring_up(int netns) {
    GANTRY_CHECK(ask(netns, RTM_NEWLINK, NLM_F_ACK, IFF_UP));
    return {};
}

result<bool> is_up(int netns) {
    GANTRY_TRY(const auto answer, ask(netns, RTM_GETLINK, 0, 0));
    return (answer.link.ifi_flags & IFF_UP) != 0;
}

} // namespace loopback_only
