// What an operation is given and what it answers; both own their bytes and descriptors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../abi/op.h"
#include "fd.hpp"
#include "result.hpp"
#include "text.hpp"

namespace gantry::sdk {

struct request {
    std::string bytes{}; ///< payload in the capability's encoding
    std::string key{};   ///< the host runs ops with the same non-empty key one after another
    std::vector<fd> fds{};
};

struct reply {
    std::string bytes{};
    std::vector<fd> fds{};
};

namespace detail {

inline result<std::vector<fd>> dup_all(const std::int32_t* fds, std::uint32_t count) {
    std::vector<fd> out;
    out.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        GANTRY_TRY(auto copy, fd::dup(fds[i]));
        out.push_back(std::move(copy));
    }
    return out;
}

inline std::vector<std::int32_t> numbers(const std::vector<fd>& fds) {
    std::vector<std::int32_t> out;
    out.reserve(fds.size());
    for (const auto& one : fds) out.push_back(one.get());
    return out;
}

inline result<request> copy(const gantry_request& in) {
    GANTRY_TRY(auto fds, dup_all(in.fds, in.fd_count));
    return request{.bytes = std::string(view(in.bytes)), .key = std::string(view(in.key)), .fds = std::move(fds)};
}

/// The reply, or the error it carries.
inline result<reply> copy(const gantry_reply& in) {
    if (in.error != nullptr) return from_abi(*in.error);
    GANTRY_TRY(auto fds, dup_all(in.fds, in.fd_count));
    return reply{.bytes = std::string(view(in.bytes)), .fds = std::move(fds)};
}

/// Calls use(const gantry_reply&) with a reply that borrows from in.
template <class Use>
auto with_abi(const reply& in, Use&& use) {
    const auto fds = numbers(in.fds);
    const gantry_reply out{sizeof(gantry_reply), static_cast<std::uint32_t>(fds.size()), fds.data(), str(in.bytes),
                           nullptr};
    return use(out);
}

} // namespace detail
} // namespace gantry::sdk
