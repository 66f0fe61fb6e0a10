// The frames of an upgraded stream (`gantry-stream`): one byte channel, four bytes big-endian length, payload.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::core::admin {

inline constexpr std::string_view stream_protocol_name = "gantry-stream";

enum class channel : std::uint8_t {
    stdin_data = 0,  ///< to the process; an empty frame ends its stdin
    stdout_data = 1, ///< from the process
    stderr_data = 2,
    control = 3, ///< JSON: {"resize":{"width","height"}} or {"signal":N} to the process
    status = 4,  ///< JSON, last frame: {"exitCode":N} or {"error":{"code","message"}}
};

inline constexpr std::size_t frame_header_size = 5;
inline constexpr std::uint32_t max_frame = 1u << 20;

struct frame_header {
    admin::channel channel;
    std::uint32_t size;
};

inline std::array<char, frame_header_size> encode_header(frame_header h) {
    return {static_cast<char>(h.channel), static_cast<char>(h.size >> 24), static_cast<char>(h.size >> 16),
            static_cast<char>(h.size >> 8), static_cast<char>(h.size)};
}

/// nullopt for an unknown channel or a frame larger than max_frame.
inline std::optional<frame_header> decode_header(const std::array<char, frame_header_size>& bytes) {
    const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
    const frame_header h{static_cast<channel>(at(0)), at(1) << 24 | at(2) << 16 | at(3) << 8 | at(4)};
    if (at(0) > static_cast<std::uint32_t>(channel::status) || h.size > max_frame) return std::nullopt;
    return h;
}

inline std::string encode_frame(channel c, std::string_view payload) {
    const auto header = encode_header({c, static_cast<std::uint32_t>(payload.size())});
    return std::string(header.data(), header.size()).append(payload);
}

} // namespace gantry::core::admin
