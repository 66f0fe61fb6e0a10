// IP addresses and networks of both families as plain values.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::netlink {

struct ip_address {
    bool v6 = false;
    std::array<std::uint8_t, 16> raw{}; ///< network order; IPv4 uses the first four

    static result<ip_address> parse(std::string_view text);
    std::string text() const;
    std::span<const std::uint8_t> bytes() const noexcept { return {raw.data(), v6 ? std::size_t{16} : std::size_t{4}}; }
    std::uint8_t bits() const noexcept { return v6 ? 128 : 32; }
    bool is_unspecified() const noexcept { return raw == std::array<std::uint8_t, 16>{}; }
    bool is_loopback() const noexcept;
    /// The address `offset` further on; wraps at the end of the space.
    ip_address plus(std::uint64_t offset) const noexcept;
    /// How far `other` (same family) is behind *this; UINT64_MAX when it is further or before.
    std::uint64_t distance_to(const ip_address& other) const noexcept;

    auto operator<=>(const ip_address&) const = default;
};

struct ip_network {
    ip_address address{}; ///< as written: may have bits beyond the prefix (an interface's address)
    std::uint8_t prefix = 0;

    /// "10.88.0.0/16"; the prefix is required.
    static result<ip_network> parse(std::string_view text);
    std::string text() const;
    ip_address base() const noexcept; ///< first address
    ip_address last() const noexcept; ///< last address (IPv4: the broadcast address)
    ip_address mask() const noexcept;
    bool contains(const ip_address& other) const noexcept;
    bool overlaps(const ip_network& other) const noexcept;

    auto operator<=>(const ip_network&) const = default;
};

} // namespace gantry::netlink
