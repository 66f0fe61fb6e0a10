// A netlink socket: batches answered by acknowledgements, dumps, and notifications.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"
#include "plugins/common/netlink/message.hpp"
#include "plugins/common/netlink/netns.hpp"

namespace gantry::netlink {

/// The messages that answered a request, without the terminating acknowledgement.
class replies {
public:
    void append(std::span<const std::uint8_t> message);
    void clear() noexcept;
    std::size_t count() const noexcept { return starts_.size(); }
    const nlmsghdr& operator[](std::size_t index) const noexcept {
        return *reinterpret_cast<const nlmsghdr*>(buffer_.data() + starts_[index]);
    }

private:
    std::vector<std::uint8_t> buffer_;
    std::vector<std::size_t> starts_;
};

/// Belongs to the network namespace in which open() ran, whatever namespace its user's thread is in later. One thread
/// at a time. Errors carry the label of the message that failed, the errno and the kernel's extended text.
class socket {
public:
    /// protocol: NETLINK_ROUTE, NETLINK_NETFILTER, ...
    static result<socket> open(int protocol);
    /// The same in another network namespace: from any thread, or cheaper by a thread's visitor.
    static result<socket> open_in(int netns, int protocol);
    static result<socket> open_in(netns_visitor& by, int netns, int protocol);

    /// Sends all messages in one call and waits until all are answered. Every message is tried; the first failure is
    /// returned. [blocks as long as the kernel works, at most 0.9 s for an
    /// answer]
    result<void> send(batch& messages);

    /// As send(), but tells the outcome of each message: 0 or a positive errno.
    result<void> send(batch& messages, std::vector<int>& outcomes);

    /// One nfnetlink transaction: the first and last message are NFNL_MSG_BATCH_BEGIN and _END. All or nothing.
    result<void> commit(batch& transaction);

    /// One request, its replies: a dump (NLM_F_DUMP; repeated when it was interrupted by a change) or a single get.
    result<replies> request(batch& message);

    /// Joins a multicast group (RTNLGRP_*, NFNLGRP_*).
    result<void> join(int group);
    /// Reads what is queued without waiting, calling fn for each message; a lost notification (ENOBUFS) is reported as
    /// code::resource. Changes made through the socket with port() `except` are left out where the kernel tells who
    /// made them (nf_tables always does, links not always).
    result<void> drain(const std::function<void(const nlmsghdr&)>& fn, std::uint32_t except);

    int fd() const noexcept { return fd_.get(); }
    /// This socket's address, which notifications about its own changes carry.
    std::uint32_t port() const noexcept { return port_; }

private:
    socket(base::unique_fd fd, std::uint32_t port) noexcept : fd_(std::move(fd)), port_(port) {}
    result<void> transmit(batch& messages);
    result<std::span<const std::uint8_t>> receive(int flags);
    result<bool> collect(std::uint32_t sequence, bool dump, const std::string& label, replies& into);

    base::unique_fd fd_;
    std::uint32_t port_ = 0;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint8_t> buffer_;
};

} // namespace gantry::netlink
