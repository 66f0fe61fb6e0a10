#include "plugins/common/netlink/socket.hpp"

#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <optional>

namespace gantry::netlink {

namespace {

constexpr timeval receive_timeout{.tv_sec = 0, .tv_usec = 900'000};
constexpr std::size_t receive_buffer = 64 << 10; // twice the largest datagram of a dump
constexpr int socket_buffer = 8 << 20;
constexpr int dump_attempts = 8;

/// The kernel's own words about a refusal (NLMSGERR_ATTR_MSG), if it gave any.
std::string_view extended_text(const nlmsghdr& message) {
    if (!(message.nlmsg_flags & NLM_F_ACK_TLVS)) return {};
    const auto* e = header_of<nlmsgerr>(message);
    std::size_t header = sizeof(nlmsgerr);
    if (!(message.nlmsg_flags & NLM_F_CAPPED)) header += e->msg.nlmsg_len - sizeof(nlmsghdr);
    const auto text = attributes(message, header).find(NLMSGERR_ATTR_MSG);
    return text ? text->text() : std::string_view{};
}

error refusal(const std::string& label, const nlmsghdr& message, int number) {
    error e = sys_error(label, number);
    if (const auto text = extended_text(message); !text.empty()) e.message.append(" (").append(text).append(")");
    return e;
}

/// Walks the messages of one datagram; fn returns false to stop.
template <class Fn>
void each_message(std::span<const std::uint8_t> datagram, Fn fn) {
    while (datagram.size() >= sizeof(nlmsghdr)) {
        const auto& message = *reinterpret_cast<const nlmsghdr*>(datagram.data());
        if (message.nlmsg_len < sizeof(nlmsghdr) || message.nlmsg_len > datagram.size()) return;
        if (!fn(message, datagram.first(message.nlmsg_len))) return;
        datagram = datagram.subspan(std::min<std::size_t>(NLMSG_ALIGN(message.nlmsg_len), datagram.size()));
    }
}

result<void> open_to(std::optional<socket>& opened, int protocol) {
    GANTRY_TRY(auto made, socket::open(protocol));
    opened.emplace(std::move(made));
    return {};
}

} // namespace

void replies::append(std::span<const std::uint8_t> message) {
    starts_.push_back(buffer_.size());
    buffer_.insert(buffer_.end(), message.begin(), message.end());
    buffer_.resize(NLMSG_ALIGN(buffer_.size()));
}

void replies::clear() noexcept {
    buffer_.clear();
    starts_.clear();
}

result<socket> socket::open(int protocol) {
    base::unique_fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
    if (!fd) return sys_error("open a netlink socket of protocol " + std::to_string(protocol), errno);
    const int on = 1;
    // Older kernels lack some of these; requests work without them, only with poorer errors.
    ::setsockopt(fd.get(), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
    ::setsockopt(fd.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    ::setsockopt(fd.get(), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &socket_buffer, sizeof socket_buffer);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &socket_buffer, sizeof socket_buffer);
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &receive_timeout, sizeof receive_timeout) != 0)
        return sys_error("set the receive timeout of a netlink socket", errno);
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    socklen_t size = sizeof address;
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
        return sys_error("bind a netlink socket of protocol " + std::to_string(protocol), errno);
    return socket(std::move(fd), address.nl_pid);
}

result<socket> socket::open_in(int netns, int protocol) {
    std::optional<socket> opened;
    GANTRY_CHECK(run_in_netns(netns, [&] { return open_to(opened, protocol); }));
    return *std::move(opened);
}

result<socket> socket::open_in(netns_visitor& by, int netns, int protocol) {
    std::optional<socket> opened;
    GANTRY_CHECK(by.run(netns, [&] { return open_to(opened, protocol); }));
    return *std::move(opened);
}

result<void> socket::transmit(batch& messages) {
    for (std::size_t i = 0; i < messages.count(); ++i) messages.message(i).nlmsg_seq = ++sequence_;
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    for (;;) {
        const ssize_t n = ::sendto(fd_.get(), messages.data(), messages.bytes(), 0,
                                   reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
        if (n >= 0) return {};
        if (errno != EINTR) return sys_error(messages.label(0) + ": send to the kernel", errno);
    }
}

result<std::span<const std::uint8_t>> socket::receive(int flags) {
    if (buffer_.empty()) buffer_.resize(receive_buffer);
    for (;;) {
        const ssize_t size = ::recv(fd_.get(), buffer_.data(), buffer_.size(), flags | MSG_TRUNC);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return sys_error("receive from the kernel", errno);
        if (static_cast<std::size_t>(size) > buffer_.size()) return sys_error("receive from the kernel", EMSGSIZE);
        return std::span<const std::uint8_t>(buffer_.data(), static_cast<std::size_t>(size));
    }
}

result<void> socket::send(batch& messages) {
    std::vector<int> outcomes;
    return send(messages, outcomes);
}

result<void> socket::send(batch& messages, std::vector<int>& outcomes) {
    outcomes.assign(messages.count(), 0);
    if (messages.empty()) return {};
    // Failures are answered unasked and in order, so the last message's acknowledgement ends it all.
    const std::size_t last = messages.count() - 1;
    messages.message(last).nlmsg_flags |= NLM_F_ACK;
    GANTRY_CHECK(transmit(messages));
    const std::uint32_t first = messages.message(0).nlmsg_seq;
    result<void> outcome;
    for (bool answered = false; !answered;) {
        auto datagram = receive(0);
        if (!datagram) {
            error e = std::move(datagram).error();
            e.message = messages.label(last) + ": " + e.message;
            return e;
        }
        each_message(*datagram, [&](const nlmsghdr& message, auto) {
            const std::uint32_t index = message.nlmsg_seq - first;
            if (message.nlmsg_type != NLMSG_ERROR || index > last) return true;
            const auto* e = header_of<nlmsgerr>(message);
            const int number = e ? -e->error : EBADMSG;
            outcomes[index] = number;
            if (number != 0 && outcome) outcome = refusal(messages.label(index), message, number);
            answered = index == last;
            return true;
        });
    }
    return outcome;
}

result<void> socket::commit(batch& transaction) {
    // The kernel answers after the commit: an error for each message that failed, and the acknowledgement of the last
    // one before the end mark. A fault of the transaction as a whole is answered with its first number.
    const std::size_t last = transaction.count() - 2;
    transaction.message(last).nlmsg_flags |= NLM_F_ACK;
    GANTRY_CHECK(transmit(transaction));
    const std::uint32_t first = transaction.message(0).nlmsg_seq;
    result<void> outcome;
    for (bool answered = false; !answered;) {
        auto datagram = receive(0);
        if (!datagram) {
            error e = std::move(datagram).error();
            e.message = transaction.label(last) + ": " + e.message;
            return e;
        }
        each_message(*datagram, [&](const nlmsghdr& message, auto) {
            const std::uint32_t index = message.nlmsg_seq - first;
            if (message.nlmsg_type != NLMSG_ERROR || index >= transaction.count()) return true;
            const auto* e = header_of<nlmsgerr>(message);
            const int number = e ? -e->error : EBADMSG;
            if (number != 0 && outcome) outcome = refusal(transaction.label(index), message, number);
            answered = answered || index == last || index == 0;
            return true;
        });
    }
    return outcome;
}

result<bool> socket::collect(std::uint32_t sequence, bool dump, const std::string& label, replies& into) {
    bool interrupted = false;
    for (bool done = false; !done;) {
        auto datagram = receive(0);
        if (!datagram) {
            error e = std::move(datagram).error();
            e.message = label + ": " + e.message;
            return e;
        }
        result<void> outcome;
        each_message(*datagram, [&](const nlmsghdr& message, std::span<const std::uint8_t> bytes) {
            if (message.nlmsg_seq != sequence) return true;
            interrupted = interrupted || (message.nlmsg_flags & NLM_F_DUMP_INTR);
            if (message.nlmsg_type == NLMSG_ERROR || message.nlmsg_type == NLMSG_DONE) {
                done = true;
                const auto* number = header_of<std::int32_t>(message);
                if (number && *number < 0) outcome = refusal(label, message, -*number);
                return false;
            }
            into.append(bytes);
            done = !dump; // one request, one reply
            return true;
        });
        if (!outcome) return std::move(outcome).error();
    }
    return !interrupted;
}

result<replies> socket::request(batch& message) {
    const bool dump = (message.message(0).nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    replies found;
    for (int attempt = 0; attempt < dump_attempts; ++attempt) {
        GANTRY_CHECK(transmit(message));
        GANTRY_TRY(const bool whole, collect(message.message(0).nlmsg_seq, dump, message.label(0), found));
        if (whole) return found;
        found.clear();
    }
    return error{.code = code::busy,
                 .message = message.label(0) + ": the kernel's table changed during each of " +
                            std::to_string(dump_attempts) + " reads; try again",
                 .retryable = true};
}

result<void> socket::join(int group) {
    if (::setsockopt(fd_.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0)
        return sys_error("join netlink group " + std::to_string(group), errno);
    return {};
}

result<void> socket::drain(const std::function<void(const nlmsghdr&)>& fn, std::uint32_t except) {
    for (;;) {
        auto datagram = receive(MSG_DONTWAIT);
        if (!datagram) {
            const int number = datagram.error().sys_errno;
            if (number == EAGAIN) return {};
            if (number == ENOBUFS)
                return error{.code = code::resource, .message = "netlink notifications were lost", .sys_errno = number};
            return std::move(datagram).error();
        }
        each_message(*datagram, [&](const nlmsghdr& message, auto) {
            if (message.nlmsg_pid != except) fn(message);
            return true;
        });
    }
}

} // namespace gantry::netlink
