#include "plugins/cni-bridge/address_pool.hpp"

#include <algorithm>
#include <bit>

namespace gantry::cni_bridge {

address_pool::address_pool(const netlink::ip_address& first, const netlink::ip_address& last,
                           const netlink::ip_address& reserved, std::uint64_t seed)
    : first_(first), size_(std::min(first.distance_to(last), size_limit - 1) + 1), next_(seed % size_),
      bits_((size_ + 63) / 64) {
    reserved_ = index_of(reserved);
    if (reserved_) set(*reserved_);
}

std::optional<std::uint64_t> address_pool::index_of(const netlink::ip_address& address) const {
    const std::uint64_t distance = first_.distance_to(address);
    return distance < size_ ? std::optional(distance) : std::nullopt;
}

std::optional<std::uint64_t> address_pool::free_from(std::uint64_t from, std::uint64_t to) const {
    for (std::uint64_t word = from / 64; word * 64 < to; ++word) {
        std::uint64_t taken = bits_[word];
        if (word == from / 64) taken |= (std::uint64_t{1} << (from % 64)) - 1;
        const std::uint64_t index = word * 64 + static_cast<std::uint64_t>(std::countr_one(taken));
        if (taken != ~std::uint64_t{0}) return index < to ? std::optional(index) : std::nullopt;
    }
    return std::nullopt;
}

std::optional<netlink::ip_address> address_pool::allocate() {
    auto index = free_from(next_, size_);
    if (!index) index = free_from(0, next_);
    if (!index) return std::nullopt;
    set(*index);
    ++used_;
    next_ = (*index + 1) % size_;
    return first_.plus(*index);
}

bool address_pool::take(const netlink::ip_address& address) {
    const auto index = index_of(address);
    if (!index || is_set(*index)) return false;
    set(*index);
    ++used_;
    return true;
}

void address_pool::release(const netlink::ip_address& address) {
    const auto index = index_of(address);
    if (!index || index == reserved_ || !is_set(*index)) return;
    clear(*index);
    --used_;
}

bool address_pool::contains(const netlink::ip_address& address) const {
    const auto index = index_of(address);
    return index && index != reserved_;
}

std::string address_pool::text() const {
    return first_.text() + "-" + first_.plus(size_ - 1).text() + ": " + std::to_string(capacity()) + " addresses, " +
           std::to_string(used_) + " in use";
}

} // namespace gantry::cni_bridge
