// Netlink messages (netlink(7)): building batches of them, and reading the attributes of replies.
#pragma once

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::netlink {

/// Several messages in one buffer, sent by one system call and answered one by one. Not thread-safe.
class batch {
public:
    /// Closes the nested attribute it stands for when it goes out of scope.
    class [[nodiscard]] nest {
    public:
        nest(batch& owner, std::uint16_t type) : owner_(owner), offset_(owner.bytes()) {
            owner.put(static_cast<std::uint16_t>(type | NLA_F_NESTED), nullptr, 0);
        }
        nest(const nest&) = delete;
        nest& operator=(const nest&) = delete;
        ~nest() { owner_.close_nest(offset_); }

    private:
        batch& owner_;
        std::size_t offset_;
    };

    /// Starts a message: `header` is the family's fixed part (ifinfomsg, nfgenmsg, ...). `label` names the action in
    /// errors ("add address 10.0.0.2/32 to eth0"). NLM_F_REQUEST is the caller's to give, NLM_F_ACK the socket's.
    template <class Header>
    void begin(std::uint16_t type, std::uint16_t flags, const Header& header, std::string label) {
        start(type, flags, std::move(label));
        append(&header, sizeof header);
    }

    void put(std::uint16_t type, const void* data, std::size_t size);
    void put(std::uint16_t type, std::span<const std::uint8_t> bytes) { put(type, bytes.data(), bytes.size()); }
    void put_u8(std::uint16_t type, std::uint8_t value) { put(type, &value, sizeof value); }
    void put_u16(std::uint16_t type, std::uint16_t value) { put(type, &value, sizeof value); }
    void put_u32(std::uint16_t type, std::uint32_t value) { put(type, &value, sizeof value); }
    void put_be16(std::uint16_t type, std::uint16_t value);
    void put_be32(std::uint16_t type, std::uint32_t value);
    void put_be64(std::uint16_t type, std::uint64_t value);
    /// NUL-terminated text.
    void put_text(std::uint16_t type, std::string_view text);
    nest open(std::uint16_t type) { return nest(*this, type); }

    /// Plain bytes after the message's fixed part, padded to 4.
    void append(const void* data, std::size_t size);

    std::size_t count() const noexcept { return starts_.size(); }
    bool empty() const noexcept { return starts_.empty(); }
    std::size_t bytes() const noexcept { return buffer_.size(); }
    nlmsghdr& message(std::size_t index) noexcept {
        return *reinterpret_cast<nlmsghdr*>(buffer_.data() + starts_[index]);
    }
    const std::string& label(std::size_t index) const noexcept { return labels_[index]; }
    /// Bytes written so far of the message under construction from `offset` (of the whole buffer) on.
    std::span<const std::uint8_t> tail(std::size_t offset) const noexcept { return std::span(buffer_).subspan(offset); }
    const void* data() const noexcept { return buffer_.data(); }

private:
    void start(std::uint16_t type, std::uint16_t flags, std::string label);
    void close_nest(std::size_t offset) noexcept;
    void grow_message() noexcept;

    std::vector<std::uint8_t> buffer_;
    std::vector<std::size_t> starts_;
    std::vector<std::string> labels_;
};

class attributes;

/// One attribute of a reply; `data` is borrowed from the reply.
struct attribute {
    std::uint16_t type = 0; ///< without NLA_F_NESTED and NLA_F_NET_BYTEORDER
    std::span<const std::uint8_t> data{};

    std::uint8_t u8() const noexcept { return read<std::uint8_t>(); }
    std::uint16_t u16() const noexcept { return read<std::uint16_t>(); }
    std::uint32_t u32() const noexcept { return read<std::uint32_t>(); }
    std::uint32_t be32() const noexcept;
    std::uint16_t be16() const noexcept;
    /// Up to the first NUL.
    std::string_view text() const noexcept;
    inline attributes nested() const noexcept;

private:
    template <class T>
    T read() const noexcept {
        T value{};
        if (data.size() >= sizeof value) std::memcpy(&value, data.data(), sizeof value);
        return value;
    }
};

/// A bounds-checked walk over attributes; stops at the first malformed one.
class attributes {
public:
    attributes() = default;
    explicit attributes(std::span<const std::uint8_t> bytes) noexcept : bytes_(bytes) {}
    /// The attributes of a message after a fixed part of `header` bytes.
    attributes(const nlmsghdr& message, std::size_t header) noexcept;

    class iterator {
    public:
        using value_type = attribute;
        using difference_type = std::ptrdiff_t;
        iterator() = default;
        explicit iterator(std::span<const std::uint8_t> rest) noexcept : rest_(rest) { read(); }
        const attribute& operator*() const noexcept { return current_; }
        const attribute* operator->() const noexcept { return &current_; }
        iterator& operator++() noexcept;
        void operator++(int) noexcept { ++*this; }
        bool operator==(std::default_sentinel_t) const noexcept { return size_ == 0; }

    private:
        void read() noexcept;
        std::span<const std::uint8_t> rest_{};
        std::size_t size_ = 0; ///< of the current attribute with padding, 0 at the end
        attribute current_{};
    };
    iterator begin() const noexcept { return iterator(bytes_); }
    static std::default_sentinel_t end() noexcept { return {}; }

    std::optional<attribute> find(std::uint16_t type) const noexcept;

private:
    std::span<const std::uint8_t> bytes_{};
};

inline attributes attribute::nested() const noexcept { return attributes(data); }

/// The fixed part of a message as T; null when the message is shorter.
template <class T>
const T* header_of(const nlmsghdr& message) noexcept {
    if (message.nlmsg_len < NLMSG_HDRLEN + sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(reinterpret_cast<const std::uint8_t*>(&message) + NLMSG_HDRLEN);
}

} // namespace gantry::netlink
