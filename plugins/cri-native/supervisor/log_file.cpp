#include "plugins/cri-native/supervisor/log_file.hpp"

#include <sys/uio.h>

namespace gantry::cri_native::supervisor {

namespace {

constexpr std::size_t max_parts = 256;
constexpr std::size_t parts_per_line = 4;

// One container's output is written at a time, so one list serves all.
iovec parts[max_parts];
std::size_t part_count = 0;

std::size_t total(const iovec* from, std::size_t count) noexcept {
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i) size += from[i].iov_len;
    return size;
}

void make_prefix(line<128>& to, const char* stream, char kind, std::int64_t wall_ns) noexcept {
    add_timestamp(to, wall_ns);
    to.add(" ").add(stream).add(" ").add(&kind, 1).add(" ");
}

} // namespace

void add_timestamp(line<128>& to, std::int64_t wall_ns) noexcept {
    const std::int64_t seconds = wall_ns / 1'000'000'000;
    const std::int64_t days = seconds / 86400;
    const auto of_day = static_cast<std::uint64_t>(seconds % 86400);
    // Days since 1970 to a civil date: years that begin in March put the leap day at their end.
    const std::int64_t z = days + 719468;
    const std::int64_t era = z / 146097;
    const std::int64_t day_of_era = z % 146097;
    const std::int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const std::int64_t month_index = (5 * day_of_year + 2) / 153;
    const std::int64_t day = day_of_year - (153 * month_index + 2) / 5 + 1;
    const std::int64_t month = month_index < 10 ? month_index + 3 : month_index - 9;
    const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
    to.number(static_cast<std::uint64_t>(year), 4).add("-").number(static_cast<std::uint64_t>(month), 2).add("-");
    to.number(static_cast<std::uint64_t>(day), 2)
        .add("T")
        .number(of_day / 3600, 2)
        .add(":")
        .number(of_day / 60 % 60, 2);
    to.add(":").number(of_day % 60, 2).add(".").number(static_cast<std::uint64_t>(wall_ns % 1'000'000'000), 9).add("Z");
}

bool partial_line::append(const char* data, std::size_t size) noexcept {
    if (!bytes_ && size != 0) bytes_ = static_cast<char*>(sys::pages_new(max));
    if (!bytes_) return size == 0;
    std::memcpy(bytes_ + used_, data, size);
    used_ += size;
    return true;
}

void partial_line::clear() noexcept {
    sys::pages_free(bytes_, max);
    bytes_ = nullptr;
    used_ = 0;
}

bool log_file::open(const char* path) noexcept {
    sys::fd file(::open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0640));
    if (!file) return false;
    file_ = static_cast<sys::fd&&>(file);
    torn_ = false;
    return true;
}

void log_file::add(const void* data, std::size_t size) noexcept {
    if (size != 0) parts[part_count++] = {const_cast<void*>(data), size};
}

void log_file::add_line(text prefix, const partial_line& partial, const char* data, std::size_t size,
                        bool has_newline) noexcept {
    add(prefix.data, prefix.size);
    add(partial.data(), partial.size());
    add(data, size + (has_newline ? 1 : 0)); // the newline stands right behind the data
    if (!has_newline) add("\n", 1);
}

void log_file::write(const char* stream, partial_line& partial, const char* data, std::size_t size,
                     std::int64_t wall_ns) noexcept {
    if (!file_) return;
    line<128> whole;
    line<128> piece;
    make_prefix(whole, stream, 'F', wall_ns);
    make_prefix(piece, stream, 'P', wall_ns);
    partial_line nothing;
    const partial_line* before = &partial; // goes out with the first line of this chunk
    const char* const end = data + size;
    while (data < end) {
        const auto* newline = static_cast<const char*>(std::memchr(data, '\n', static_cast<std::size_t>(end - data)));
        std::size_t length = static_cast<std::size_t>((newline ? newline : end) - data);
        while (before->size() + length > partial_line::max) {
            const std::size_t take = partial_line::max - before->size();
            add_line(piece, *before, data, take, false);
            before = &nothing;
            data += take;
            length -= take;
            if (part_count + 2 * parts_per_line > max_parts) flush(wall_ns);
        }
        if (newline) {
            add_line(whole, *before, data, length, true);
            before = &nothing;
            data = newline + 1;
            if (part_count + 2 * parts_per_line > max_parts) flush(wall_ns);
            continue;
        }
        flush(wall_ns); // what is queued may point into the partial line, which changes now
        if (before == &nothing) partial.clear();
        if (!partial.append(data, length)) dropped_ += length;
        return;
    }
    flush(wall_ns);
    if (before == &nothing) partial.clear();
}

void log_file::finish(const char* stream, partial_line& partial, std::int64_t wall_ns) noexcept {
    if (file_ && partial.size() != 0) {
        line<128> whole;
        make_prefix(whole, stream, 'F', wall_ns);
        add_line(whole, partial, nullptr, 0, false);
        flush(wall_ns);
    }
    partial.clear();
}

// Says in the log itself what it lacks, once there is room again.
bool log_file::write_marker(std::int64_t wall_ns) noexcept {
    if (unmarked_ == 0) return true;
    line<256> marker;
    if (torn_) marker.add("\n");
    line<128> prefix;
    make_prefix(prefix, "stderr", 'F', wall_ns);
    marker.add(prefix).add("gantry: ").number(unmarked_).add(" bytes of log lost here: the disk was full\n");
    const ssize_t n = sys::retry([&] { return ::write(file_.get(), marker.c_str(), marker.size()); });
    if (n != static_cast<ssize_t>(marker.size())) {
        torn_ = torn_ || n > 0;
        return false;
    }
    unmarked_ = 0;
    torn_ = false;
    return true;
}

void log_file::flush(std::int64_t wall_ns) noexcept {
    iovec* at = parts;
    std::size_t left = part_count;
    part_count = 0;
    if (left == 0) return;
    if (!write_marker(wall_ns)) {
        const std::size_t lost = total(at, left);
        dropped_ += lost;
        unmarked_ += lost;
        return;
    }
    while (left != 0) {
        const ssize_t n = sys::retry([&] { return ::writev(file_.get(), at, static_cast<int>(left)); });
        if (n <= 0) {
            const std::size_t lost = total(at, left);
            dropped_ += lost;
            unmarked_ += lost;
            return;
        }
        std::size_t written = static_cast<std::size_t>(n);
        while (left != 0 && written >= at->iov_len) {
            written -= at->iov_len;
            torn_ = static_cast<const char*>(at->iov_base)[at->iov_len - 1] != '\n';
            ++at;
            --left;
        }
        if (left != 0 && written != 0) {
            torn_ = static_cast<const char*>(at->iov_base)[written - 1] != '\n';
            at->iov_base = static_cast<char*>(at->iov_base) + written;
            at->iov_len -= written;
        }
    }
}

} // namespace gantry::cri_native::supervisor
