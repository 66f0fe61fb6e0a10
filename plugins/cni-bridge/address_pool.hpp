// The addresses of one family that pods may have: a bitmap, handed out round-robin from a random start, so that an
// address is reused as late as possible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugins/common/netlink/ip.hpp"

namespace gantry::cni_bridge {

/// No I/O, no clock; one thread.
class address_pool {
public:
    /// A node runs thousands of pods, never more than this: of a larger range only the first so many are used.
    static constexpr std::uint64_t size_limit = 65536;

    /// first <= last, of one family. reserved (the gateway) is never handed out. seed picks where allocation starts.
    address_pool(const netlink::ip_address& first, const netlink::ip_address& last, const netlink::ip_address& reserved,
                 std::uint64_t seed);

    /// The next free address; nothing when all are taken. Amortised O(1), at worst one pass over the bitmap.
    std::optional<netlink::ip_address> allocate();
    /// False when the address is taken, reserved, or not of this pool.
    bool take(const netlink::ip_address& address);
    void release(const netlink::ip_address& address);
    bool contains(const netlink::ip_address& address) const;

    std::uint64_t capacity() const noexcept { return size_ - (reserved_ ? 1 : 0); }
    std::uint64_t used() const noexcept { return used_; }
    /// "10.88.0.2-10.88.255.254: 65533 addresses, 12 in use"
    std::string text() const;

private:
    std::optional<std::uint64_t> index_of(const netlink::ip_address& address) const;
    bool is_set(std::uint64_t index) const { return bits_[index / 64] >> (index % 64) & 1; }
    void set(std::uint64_t index) { bits_[index / 64] |= std::uint64_t{1} << (index % 64); }
    void clear(std::uint64_t index) { bits_[index / 64] &= ~(std::uint64_t{1} << (index % 64)); }
    std::optional<std::uint64_t> free_from(std::uint64_t from, std::uint64_t to) const;

    netlink::ip_address first_;
    std::uint64_t size_;
    std::optional<std::uint64_t> reserved_;
    std::uint64_t next_;
    std::uint64_t used_ = 0;
    std::vector<std::uint64_t> bits_;
};

} // namespace gantry::cni_bridge
