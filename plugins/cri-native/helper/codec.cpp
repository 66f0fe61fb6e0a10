#include "plugins/cri-native/helper/codec.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <zlib.h>
#include <zstd.h>

namespace gantry::cri_helper {

namespace {

constexpr std::size_t block_size = 256u << 10;
constexpr int zstd_window_log = 27; // 128 MiB: the format's recommended bound for a decoder

error damaged(std::string_view format, std::string_view why) {
    return {.code = code::invalid, .message = std::string(format) + " data: " + std::string(why)};
}

class plain final : public decompressor {
public:
    result<void> push(std::string_view bytes, const byte_sink& sink) override { return sink(bytes); }
    result<void> finish() override { return {}; }
};

class gzip final : public decompressor {
public:
    gzip() : block_(block_size) { ready_ = ::inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK; }
    ~gzip() override {
        if (ready_) ::inflateEnd(&stream_);
    }
    gzip(const gzip&) = delete;
    gzip& operator=(const gzip&) = delete;

    result<void> push(std::string_view bytes, const byte_sink& sink) override {
        if (!ready_) return damaged("gzip", "out of memory");
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
        stream_.avail_in = static_cast<uInt>(bytes.size());
        while (stream_.avail_in > 0 || pending_output_) {
            if (between_members_ && !next_member()) {
                if (stream_.avail_in == 0) return {};
                return damaged("gzip", "garbage after the end");
            }
            stream_.next_out = reinterpret_cast<Bytef*>(block_.data());
            stream_.avail_out = static_cast<uInt>(block_.size());
            const int status = ::inflate(&stream_, Z_NO_FLUSH);
            if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
                return damaged("gzip", stream_.msg != nullptr ? stream_.msg : "damaged");
            pending_output_ = stream_.avail_out == 0 && status != Z_STREAM_END;
            between_members_ = status == Z_STREAM_END;
            if (const std::size_t made = block_.size() - stream_.avail_out; made > 0)
                GANTRY_CHECK(sink(std::string_view(block_.data(), made)));
        }
        return {};
    }

    result<void> finish() override { return between_members_ ? result<void>{} : damaged("gzip", "it is cut short"); }

private:
    /// Members follow each other; zeros may pad the last one. False when no member starts here.
    bool next_member() {
        if (padding_ || *stream_.next_in == 0) {
            padding_ = true;
            while (stream_.avail_in > 0 && *stream_.next_in == 0) {
                ++stream_.next_in;
                --stream_.avail_in;
            }
            return false;
        }
        between_members_ = false;
        return ::inflateReset(&stream_) == Z_OK;
    }

    z_stream stream_{};
    std::vector<char> block_;
    bool ready_ = false;
    bool pending_output_ = false;
    bool between_members_ = false;
    bool padding_ = false;
};

class zstd final : public decompressor {
public:
    zstd() : stream_(::ZSTD_createDCtx()), block_(block_size) {
        if (stream_ != nullptr) ::ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, zstd_window_log);
    }
    ~zstd() override { ::ZSTD_freeDCtx(stream_); }
    zstd(const zstd&) = delete;
    zstd& operator=(const zstd&) = delete;

    result<void> push(std::string_view bytes, const byte_sink& sink) override {
        if (stream_ == nullptr) return damaged("zstd", "out of memory");
        ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
        bool full = false;
        while (in.pos < in.size || full) {
            ZSTD_outBuffer out{block_.data(), block_.size(), 0};
            hint_ = ::ZSTD_decompressStream(stream_, &out, &in);
            if (::ZSTD_isError(hint_) != 0) return damaged("zstd", ::ZSTD_getErrorName(hint_));
            full = out.pos == out.size && hint_ != 0;
            if (out.pos > 0) GANTRY_CHECK(sink(std::string_view(block_.data(), out.pos)));
        }
        return {};
    }

    result<void> finish() override { return hint_ == 0 ? result<void>{} : damaged("zstd", "it is cut short"); }

private:
    ZSTD_DCtx* stream_;
    std::vector<char> block_;
    std::size_t hint_ = 1; // 0 exactly at the end of a frame
};

bool has_magic(std::string_view head, std::string_view magic) noexcept { return head.starts_with(magic); }

constexpr std::string_view gzip_magic = "\x1f\x8b";
constexpr std::string_view zstd_magic = "\x28\xb5\x2f\xfd";

bool is_zstd_skippable(std::string_view head) noexcept {
    return head.size() >= 4 && (static_cast<unsigned char>(head[0]) & 0xf0) == 0x50 &&
           head.substr(1, 3) == "\x2a\x4d\x18";
}

} // namespace

bool is_compressed(std::string_view head) noexcept {
    return has_magic(head, gzip_magic) || has_magic(head, zstd_magic) || is_zstd_skippable(head);
}

result<std::unique_ptr<decompressor>> make_decompressor(std::string_view head) {
    if (has_magic(head, gzip_magic)) return std::unique_ptr<decompressor>(std::make_unique<gzip>());
    if (is_compressed(head)) return std::unique_ptr<decompressor>(std::make_unique<zstd>());
    struct known {
        std::string_view magic;
        const char* name;
    };
    constexpr known foreign[] = {{"BZh", "bzip2"}, {{"\xfd\x37zXZ\0", 6}, "xz"}, {"\x04\x22\x4d\x18", "lz4"}};
    const auto is_bzip2 = [&] { return head.substr(std::min<std::size_t>(4, head.size())).starts_with("1AY&SY"); };
    for (const auto& format : foreign) // a tar may well start with a file named BZh
        if (has_magic(head, format.magic) && (format.name != std::string_view("bzip2") || is_bzip2()))
            return error{.code = code::unsupported,
                         .message = std::string(format.name) + " compression; images use gzip, zstd or none"};
    return std::unique_ptr<decompressor>(std::make_unique<plain>());
}

} // namespace gantry::cri_helper
