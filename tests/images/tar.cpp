#include "tests/images/tar.hpp"

#include <array>
#include <cstdio>
#include <cstring>

namespace gantry::test {

namespace {

constexpr std::size_t block = 512;
using header_block = std::array<char, block>;

void put_text(header_block& out, std::size_t at, std::size_t width, std::string_view text) {
    std::memcpy(out.data() + at, text.data(), std::min(width, text.size()));
}

void put_octal(header_block& out, std::size_t at, std::size_t width, std::uint64_t value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%0*llo", static_cast<int>(width) - 1, static_cast<unsigned long long>(value));
    put_text(out, at, width, digits);
}

void put_base256(header_block& out, std::size_t at, std::size_t width, std::int64_t value) {
    for (std::size_t i = 0; i < width; ++i) {
        const std::size_t shift = 8 * (width - 1 - i);
        out[at + i] = static_cast<char>(shift < 64 ? value >> shift : value < 0 ? -1 : 0);
    }
    out[at] = static_cast<char>(out[at] | 0x80);
}

void put_checksum(header_block& out) {
    std::memset(out.data() + 148, ' ', 8);
    unsigned sum = 0;
    for (const char c : out) sum += static_cast<unsigned char>(c);
    std::snprintf(out.data() + 148, 8, "%06o", sum);
    out[155] = ' ';
}

std::string padded(std::string_view data) {
    std::string out(data);
    out.resize((out.size() + block - 1) / block * block, '\0');
    return out;
}

std::string pax_record(const std::string& key, const std::string& value) {
    const std::size_t body = key.size() + value.size() + 3; // space, =, newline
    std::size_t length = body + 1;
    while (std::to_string(length).size() + body != length) length = std::to_string(length).size() + body;
    return std::to_string(length) + " " + key + "=" + value + "\n";
}

} // namespace

tar& tar::add(const tar_header& header, std::string_view data) {
    if (!header.pax.empty()) {
        std::string records;
        for (const auto& [key, value] : header.pax) records += pax_record(key, value);
        add({.name = "PaxHeaders/x", .type = 'x'}, records);
    }
    header_block out{};
    const auto size = header.size >= 0 ? static_cast<std::uint64_t>(header.size) : data.size();
    put_text(out, 0, 100, header.name);
    put_octal(out, 100, 8, header.mode);
    if (header.base256) {
        put_base256(out, 108, 8, static_cast<std::int64_t>(header.uid));
        put_base256(out, 116, 8, static_cast<std::int64_t>(header.gid));
        put_base256(out, 124, 12, static_cast<std::int64_t>(size));
        put_base256(out, 136, 12, header.mtime);
    } else {
        put_octal(out, 108, 8, header.uid);
        put_octal(out, 116, 8, header.gid);
        put_octal(out, 124, 12, size);
        put_octal(out, 136, 12, static_cast<std::uint64_t>(header.mtime));
    }
    out[156] = header.type;
    put_text(out, 157, 100, header.link);
    put_text(out, 257, 8, std::string_view("ustar\00000", 8));
    put_octal(out, 329, 8, header.major);
    put_octal(out, 337, 8, header.minor);
    put_checksum(out);
    bytes_.append(out.data(), out.size());
    bytes_ += padded(data);
    return *this;
}

tar& tar::gnu_long_name(const std::string& name, std::string_view data) {
    add({.name = "././@LongLink", .type = 'L'}, name + '\0');
    return add({.name = name.substr(0, 100)}, data);
}

tar& tar::gnu_sparse(const std::string& name, std::uint64_t real_size, std::uint64_t offset, std::string_view data) {
    header_block out{};
    put_text(out, 0, 100, name);
    put_octal(out, 100, 8, 0644);
    put_octal(out, 108, 8, 0);
    put_octal(out, 116, 8, 0);
    put_octal(out, 124, 12, data.size());
    put_octal(out, 136, 12, 1'600'000'000);
    out[156] = 'S';
    put_text(out, 257, 8, std::string_view("ustar  \0", 8));
    put_base256(out, 386, 12, static_cast<std::int64_t>(offset));
    put_octal(out, 398, 12, data.size());
    put_base256(out, 483, 12, static_cast<std::int64_t>(real_size));
    put_checksum(out);
    bytes_.append(out.data(), out.size());
    bytes_ += padded(data);
    return *this;
}

tar& tar::raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
}

} // namespace gantry::test
