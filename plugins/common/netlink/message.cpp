#include "plugins/common/netlink/message.hpp"

#include <endian.h>

#include <algorithm>

namespace gantry::netlink {

namespace {

constexpr std::size_t padded(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

} // namespace

void batch::start(std::uint16_t type, std::uint16_t flags, std::string label) {
    starts_.push_back(buffer_.size());
    labels_.push_back(std::move(label));
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = flags;
    append(&header, sizeof header);
}

void batch::append(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    buffer_.insert(buffer_.end(), bytes, bytes + size);
    buffer_.resize(padded(buffer_.size()));
    grow_message();
}

void batch::grow_message() noexcept {
    message(starts_.size() - 1).nlmsg_len = static_cast<std::uint32_t>(buffer_.size() - starts_.back());
}

void batch::put(std::uint16_t type, const void* data, std::size_t size) {
    const nlattr header{.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + size), .nla_type = type};
    const auto* raw = reinterpret_cast<const std::uint8_t*>(&header);
    buffer_.insert(buffer_.end(), raw, raw + sizeof header);
    append(data, size);
}

void batch::put_be16(std::uint16_t type, std::uint16_t value) { put_u16(type, htobe16(value)); }
void batch::put_be32(std::uint16_t type, std::uint32_t value) { put_u32(type, htobe32(value)); }
void batch::put_be64(std::uint16_t type, std::uint64_t value) {
    const std::uint64_t big = htobe64(value);
    put(type, &big, sizeof big);
}

void batch::put_text(std::uint16_t type, std::string_view text) {
    const nlattr header{.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + text.size() + 1), .nla_type = type};
    const auto* raw = reinterpret_cast<const std::uint8_t*>(&header);
    buffer_.insert(buffer_.end(), raw, raw + sizeof header);
    buffer_.insert(buffer_.end(), text.begin(), text.end());
    const std::uint8_t nul = 0;
    append(&nul, 1);
}

void batch::close_nest(std::size_t offset) noexcept {
    reinterpret_cast<nlattr*>(buffer_.data() + offset)->nla_len = static_cast<std::uint16_t>(buffer_.size() - offset);
}

std::uint32_t attribute::be32() const noexcept { return be32toh(u32()); }
std::uint16_t attribute::be16() const noexcept { return be16toh(u16()); }

std::string_view attribute::text() const noexcept {
    const auto* chars = reinterpret_cast<const char*>(data.data());
    return {chars, static_cast<std::size_t>(std::find(chars, chars + data.size(), '\0') - chars)};
}

attributes::attributes(const nlmsghdr& message, std::size_t header) noexcept {
    const std::size_t skip = NLMSG_HDRLEN + padded(header);
    if (message.nlmsg_len > skip)
        bytes_ = {reinterpret_cast<const std::uint8_t*>(&message) + skip, message.nlmsg_len - skip};
}

std::optional<attribute> attributes::find(std::uint16_t type) const noexcept {
    for (const auto& candidate : *this)
        if (candidate.type == type) return candidate;
    return std::nullopt;
}

attributes::iterator& attributes::iterator::operator++() noexcept {
    rest_ = rest_.subspan(std::min(size_, rest_.size()));
    read();
    return *this;
}

void attributes::iterator::read() noexcept {
    size_ = 0;
    if (rest_.size() < sizeof(nlattr)) return;
    nlattr header{};
    std::memcpy(&header, rest_.data(), sizeof header);
    if (header.nla_len < NLA_HDRLEN || header.nla_len > rest_.size()) return;
    current_.type = header.nla_type & NLA_TYPE_MASK;
    current_.data = rest_.subspan(NLA_HDRLEN, header.nla_len - NLA_HDRLEN);
    size_ = padded(header.nla_len);
}

} // namespace gantry::netlink
