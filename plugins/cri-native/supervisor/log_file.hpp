// A container's log in the CRI format: "TIME STREAM P|F PAYLOAD\n". Payload bytes are opaque; lines over 16 KiB are cut
// into P pieces and a last F.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cri-native/supervisor/sys.hpp"
#include "plugins/cri-native/supervisor/text.hpp"

namespace gantry::cri_native::supervisor {

/// RFC 3339 with nine decimals in UTC.
void add_timestamp(line<128>& to, std::int64_t wall_ns) noexcept;

/// The start of a line whose end has not come yet.
class partial_line {
public:
    static constexpr std::size_t max = 16u << 10;

    ~partial_line() { clear(); }
    const char* data() const noexcept { return bytes_; }
    std::size_t size() const noexcept { return used_; }
    /// False when there is no memory for it.
    bool append(const char* data, std::size_t size) noexcept;
    void clear() noexcept;

private:
    char* bytes_ = nullptr;
    std::size_t used_ = 0;
};

class log_file {
public:
    /// Appends to path, created 0640; a symlink at its end is refused. Keeps the old file when it fails (errno).
    bool open(const char* path) noexcept;
    void write(const char* stream, partial_line& partial, const char* data, std::size_t size,
               std::int64_t wall_ns) noexcept;
    /// The stream ended: a line without an end becomes whole.
    void finish(const char* stream, partial_line& partial, std::int64_t wall_ns) noexcept;
    void close() noexcept { file_.reset(); }
    /// Bytes that the disk could not take since the container was created.
    std::uint64_t dropped() const noexcept { return dropped_; }

private:
    void flush(std::int64_t wall_ns) noexcept;
    void add(const void* data, std::size_t size) noexcept;
    void add_line(text prefix, const partial_line& partial, const char* data, std::size_t size,
                  bool has_newline) noexcept;
    bool write_marker(std::int64_t wall_ns) noexcept;

    sys::fd file_;
    std::uint64_t dropped_ = 0;
    std::uint64_t unmarked_ = 0; // dropped and not yet told in the log
    bool torn_ = false;          // the file ends inside a line
};

} // namespace gantry::cri_native::supervisor
