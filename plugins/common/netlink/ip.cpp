#include "plugins/common/netlink/ip.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <limits>

namespace gantry::netlink {

result<ip_address> ip_address::parse(std::string_view text) {
    const std::string copy(text);
    ip_address address;
    address.v6 = copy.find(':') != std::string::npos;
    if (copy.find('\0') != std::string::npos ||
        ::inet_pton(address.v6 ? AF_INET6 : AF_INET, copy.c_str(), address.raw.data()) != 1)
        return error{.code = code::invalid, .message = "\"" + copy + "\" is not an IP address"};
    return address;
}

std::string ip_address::text() const {
    char buffer[INET6_ADDRSTRLEN] = "";
    ::inet_ntop(v6 ? AF_INET6 : AF_INET, raw.data(), buffer, sizeof buffer);
    return buffer;
}

bool ip_address::is_loopback() const noexcept {
    if (!v6) return raw[0] == 127;
    ip_address one{.v6 = true};
    one.raw[15] = 1;
    return *this == one;
}

ip_address ip_address::plus(std::uint64_t offset) const noexcept {
    ip_address sum = *this;
    std::uint64_t carry = offset;
    for (std::size_t i = bytes().size(); i-- > 0 && carry != 0;) {
        const std::uint64_t digit = sum.raw[i] + (carry & 0xff);
        sum.raw[i] = static_cast<std::uint8_t>(digit);
        carry = (carry >> 8) + (digit >> 8);
    }
    return sum;
}

std::uint64_t ip_address::distance_to(const ip_address& other) const noexcept {
    constexpr auto far = std::numeric_limits<std::uint64_t>::max();
    if (v6 != other.v6 || other < *this) return far;
    std::uint64_t distance = 0;
    std::int64_t digit = 0;
    for (std::size_t i = 0; i < bytes().size(); ++i) {
        if (distance >> 55) return far;
        digit = static_cast<std::int64_t>(other.raw[i]) - static_cast<std::int64_t>(raw[i]);
        distance = distance * 256 + static_cast<std::uint64_t>(digit);
    }
    return distance;
}

result<ip_network> ip_network::parse(std::string_view text) {
    const auto slash = text.find('/');
    ip_network network;
    if (slash != std::string_view::npos) {
        const auto number = text.substr(slash + 1);
        const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), network.prefix);
        if (auto address = ip_address::parse(text.substr(0, slash)); address && fault == std::errc{} &&
                                                                     end == number.data() + number.size() &&
                                                                     network.prefix <= address->bits()) {
            network.address = *address;
            return network;
        }
    }
    return error{.code = code::invalid,
                 .message =
                     "\"" + std::string(text) + "\" is not a network; write ADDRESS/PREFIX, for example 10.88.0.0/16"};
}

std::string ip_network::text() const { return address.text() + "/" + std::to_string(prefix); }

ip_address ip_network::mask() const noexcept {
    ip_address mask{.v6 = address.v6};
    for (std::uint8_t i = 0; i < prefix; ++i) mask.raw[i / 8] |= static_cast<std::uint8_t>(0x80 >> (i % 8));
    return mask;
}

ip_address ip_network::base() const noexcept {
    const ip_address bits = mask();
    ip_address first = address;
    for (std::size_t i = 0; i < first.raw.size(); ++i) first.raw[i] &= bits.raw[i];
    return first;
}

ip_address ip_network::last() const noexcept {
    const ip_address bits = mask();
    ip_address end = address;
    for (std::size_t i = 0; i < end.bytes().size(); ++i) end.raw[i] |= static_cast<std::uint8_t>(~bits.raw[i]);
    return end;
}

bool ip_network::contains(const ip_address& other) const noexcept {
    return other.v6 == address.v6 && ip_network{other, prefix}.base() == base();
}

bool ip_network::overlaps(const ip_network& other) const noexcept {
    return contains(other.base()) || other.contains(base());
}

} // namespace gantry::netlink
