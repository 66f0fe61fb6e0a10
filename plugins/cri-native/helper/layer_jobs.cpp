#include "plugins/cri-native/helper/layer_jobs.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "plugins/cri-native/helper/codec.hpp"
#include "plugins/cri-native/helper/digest.hpp"
#include "plugins/cri-native/helper/sandbox.hpp"
#include "plugins/cri-native/helper/untar.hpp"

namespace gantry::cri_helper {

namespace {

constexpr std::size_t read_size = 256u << 10;
constexpr std::uint64_t progress_step = 4u << 20;
constexpr int warning_limit = 20;

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

/// Paths are bytes, JSON strings are UTF-8.
std::string to_hex(std::string_view text) {
    std::string hex;
    for (const char c : text) {
        hex += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
        hex += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
    }
    return hex;
}

std::string from_hex(std::string_view hex) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::string text;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        text += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
    return text;
}

} // namespace

result<void> pump_layer(int archive_fd, const member& where, const std::string& diff_id, int out,
                        const load_request& limits, const reporter& report) {
    GANTRY_CHECK(assume(role::pump, {}));
    digester digest;
    std::uint64_t made = 0;
    std::uint64_t read = 0;
    std::uint64_t reported = 0;
    // A tar has up to three blocks of header for an entry.
    const std::uint64_t made_limit = limits.bytes + limits.inodes * 2048;
    const byte_sink sink = [&](std::string_view bytes) -> result<void> {
        made += bytes.size();
        if (made > made_limit)
            return error{.code = code::resource,
                         .message = "it unpacks to more than " + std::to_string(made_limit) + " bytes"};
        if (made > limits.ratio_floor && made / std::max<std::uint64_t>(where.size, 1) > limits.ratio)
            return error{.code = code::resource,
                         .message = "its compression ratio is above " + std::to_string(limits.ratio) +
                                    ": this is no honest layer"};
        if (!write_all(out, bytes)) return sys_error("write to the unpacking process", errno);
        return {};
    };
    std::vector<char> block(read_size);
    std::unique_ptr<decompressor> codec;
    while (read < where.size) {
        const auto want = std::min<std::uint64_t>(block.size(), where.size - read);
        const ssize_t n = ::pread(archive_fd, block.data(), want, static_cast<off_t>(where.offset + read));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sys_error("read the archive", errno);
        if (n == 0) return error{.code = code::invalid, .message = "the archive is cut short"};
        const std::string_view bytes(block.data(), static_cast<std::size_t>(n));
        if (!codec) {
            GANTRY_TRY(codec, make_decompressor(bytes));
        }
        digest.update(bytes.data(), bytes.size());
        read += bytes.size();
        GANTRY_CHECK(codec->push(bytes, sink));
        if (read - reported >= progress_step || read == where.size) {
            report.send({{"type", "progress"}, {"layer", diff_id}, {"done", read}, {"total", where.size}});
            reported = read;
        }
    }
    if (codec) GANTRY_CHECK(codec->finish());
    report.send({{"type", "pumped"}, {"digest", digest.finish()}});
    return {};
}

result<void> unpack_layer(int in, const std::string& dir, const load_request& request, budget& usage,
                          const reporter& report) {
    GANTRY_CHECK(narrow_to(dir.c_str()));
    GANTRY_CHECK(assume(role::unpack, {.trusted_xattr = !request.user_xattr, .device_nodes = request.device_nodes}));
    base::unique_fd root(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root) return sys_error("open the layer's root", errno);
    digester digest;
    std::vector<char> block(read_size);
    const byte_stream stream = [&]() -> result<std::string_view> {
        ssize_t n;
        do n = ::read(in, block.data(), block.size());
        while (n < 0 && errno == EINTR);
        if (n < 0) return sys_error("read the decompressed layer", errno);
        digest.update(block.data(), static_cast<std::size_t>(n));
        return std::string_view(block.data(), static_cast<std::size_t>(n));
    };
    int warnings = 0;
    apply_options options{.user_xattr = request.user_xattr, .device_nodes = request.device_nodes};
    options.warn = [&](const std::string& text) {
        if (++warnings <= warning_limit) report.warn(text);
    };
    applier layer(root.get(), usage, options);
    GANTRY_TRY(const auto summary, untar(stream, layer));
    if (warnings > warning_limit)
        report.warn(std::to_string(warnings - warning_limit) + " more warnings of this layer");
    auto message = to_json(summary);
    message["type"] = "unpacked";
    message["diffID"] = digest.finish();
    report.send(message);
    return {};
}

base::json::object to_json(const layer_summary& summary) {
    base::json::object links;
    for (const auto& [path, target] : summary.lower_links) links[to_hex(path)] = to_hex(target);
    base::json::array implied;
    for (const auto& path : summary.implied) implied.emplace_back(to_hex(path));
    return {{"bytes", summary.bytes},
            {"inodes", summary.inodes},
            {"opaqueRoot", summary.opaque_root},
            {"links", std::move(links)},
            {"implied", std::move(implied)}};
}

result<layer_summary> summary_in(const base::json::object& message) {
    try {
        layer_summary summary;
        summary.bytes = message.at("bytes").to_number<std::uint64_t>();
        summary.inodes = message.at("inodes").to_number<std::uint64_t>();
        summary.opaque_root = message.at("opaqueRoot").as_bool();
        for (const auto& link : message.at("links").as_object())
            summary.lower_links[from_hex(link.key())] = from_hex(link.value().as_string());
        for (const auto& path : message.at("implied").as_array()) summary.implied.insert(from_hex(path.as_string()));
        return summary;
    } catch (const std::exception& e) {
        return error{.message = std::string("a worker's summary: ") + e.what()};
    }
}

} // namespace gantry::cri_helper
