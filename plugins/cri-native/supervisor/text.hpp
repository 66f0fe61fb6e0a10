// Text in fixed memory: what std::string would do if this program allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plugins/cri-native/launch/wire.hpp"

namespace gantry::cri_native::supervisor {

using launch::wire::text;

/// A NUL-terminated text of at most Size - 1 bytes; what does not fit is cut and truncated() says so.
template <std::size_t Size>
class line {
public:
    constexpr line() noexcept { bytes_[0] = '\0'; }
    line& add(const char* s, std::size_t n) noexcept {
        if (n > Size - 1 - used_) {
            n = Size - 1 - used_;
            truncated_ = true;
        }
        std::memcpy(bytes_ + used_, s, n);
        used_ += n;
        bytes_[used_] = '\0';
        return *this;
    }
    line& add(const char* s) noexcept { return add(s, std::strlen(s)); }
    line& add(text t) noexcept { return add(t.data, t.size); }
    line& number(std::uint64_t value, unsigned width = 1) noexcept {
        char digits[24];
        unsigned at = sizeof digits;
        do {
            digits[--at] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value != 0);
        while (sizeof digits - at < width) digits[--at] = '0';
        return add(digits + at, sizeof digits - at);
    }
    line& signed_number(std::int64_t value) noexcept {
        if (value < 0) add("-");
        return number(value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value));
    }
    void cut(std::size_t size) noexcept {
        used_ = size;
        bytes_[used_] = '\0';
    }

    const char* c_str() const noexcept { return bytes_; }
    std::size_t size() const noexcept { return used_; }
    bool truncated() const noexcept { return truncated_; }
    operator text() const noexcept { return {bytes_, static_cast<std::uint32_t>(used_)}; }

private:
    char bytes_[Size]; // uninitialised past the end: most lines are short and many
    std::size_t used_ = 0;
    bool truncated_ = false;
};

using path_line = line<4096>;

inline bool same(text a, text b) noexcept { return a.size == b.size && std::memcmp(a.data, b.data, a.size) == 0; }
inline bool starts_with(text t, const char* prefix) noexcept {
    const std::size_t n = std::strlen(prefix);
    return t.size >= n && std::memcmp(t.data, prefix, n) == 0;
}

/// The value of the line "key value" in a small kernel file, 0 if absent.
inline std::uint64_t value_of(const char* file, const char* key) noexcept {
    const std::size_t n = std::strlen(key);
    for (const char* at = file; *at != '\0';) {
        if (std::strncmp(at, key, n) == 0 && at[n] == ' ') {
            std::uint64_t value = 0;
            for (at += n + 1; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<unsigned>(*at - '0');
            return value;
        }
        at = std::strchr(at, '\n');
        if (!at) break;
        ++at;
    }
    return 0;
}

} // namespace gantry::cri_native::supervisor
