// Decompression by magic number, never by label: plain, gzip (also several members), zstd (also several frames).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

using byte_sink = std::function<result<void>(std::string_view)>;

/// Push bytes in, decompressed bytes come out of the sink in blocks.
class decompressor {
public:
    virtual ~decompressor() = default;
    virtual result<void> push(std::string_view bytes, const byte_sink& sink) = 0;
    /// Fails when the stream ends within a member or frame.
    virtual result<void> finish() = 0;
};

/// For a stream that starts with `head` (at least its first 10 bytes, or all of it). code::unsupported names bzip2, xz
/// and lz4; what has no known magic is taken as plain.
result<std::unique_ptr<decompressor>> make_decompressor(std::string_view head);

/// True if `head` has a magic that make_decompressor undoes.
bool is_compressed(std::string_view head) noexcept;

} // namespace gantry::cri_helper
