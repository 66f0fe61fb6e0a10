#include "plugins/cri-native/helper/untar.hpp"

#include <clocale>
#include <optional>

#include <archive_entry.h>

#include "plugins/cri-native/helper/archive_handle.hpp"

namespace gantry::cri_helper {

namespace {

struct reader_context {
    const byte_stream& stream;
    std::optional<error> failure;
};

la_ssize_t read_stream(archive*, void* context, const void** bytes) {
    auto* reader = static_cast<reader_context*>(context);
    auto chunk = reader->stream();
    if (!chunk) {
        reader->failure = std::move(chunk).error();
        return ARCHIVE_FATAL;
    }
    *bytes = chunk->data();
    return static_cast<la_ssize_t>(chunk->size());
}

error bad(std::string_view name, std::string_view why) {
    return {.code = code::invalid, .message = "entry " + quote(name) + ": " + std::string(why)};
}

result<entry_type> type_of(archive_entry* raw, std::string_view name) {
    if (::archive_entry_hardlink(raw) != nullptr) return entry_type::hardlink;
    switch (::archive_entry_filetype(raw)) {
    case AE_IFREG: return entry_type::file;
    case AE_IFDIR: return entry_type::directory;
    case AE_IFLNK: return entry_type::symlink;
    case AE_IFCHR: return entry_type::char_device;
    case AE_IFBLK: return entry_type::block_device;
    case AE_IFIFO: return entry_type::fifo;
    default: return bad(name, "its type does not belong in a layer");
    }
}

result<std::uint32_t> owner(std::int64_t id, std::string_view name, std::string_view what) {
    if (id >= 0 && id < UINT32_MAX) return static_cast<std::uint32_t>(id);
    return bad(name, std::string(what) + " " + std::to_string(id) + " is not within 0 and 4294967294");
}

result<tar_entry> convert(archive_entry* raw) {
    const char* name = ::archive_entry_pathname(raw);
    if (name == nullptr) return error{.code = code::invalid, .message = "an entry has no readable name"};
    tar_entry entry;
    entry.name = name;
    GANTRY_TRY(entry.type, type_of(raw, entry.name));
    GANTRY_TRY(entry.uid, owner(::archive_entry_uid(raw), entry.name, "owner"));
    GANTRY_TRY(entry.gid, owner(::archive_entry_gid(raw), entry.name, "group"));
    entry.mode = ::archive_entry_perm(raw) & 07777;
    entry.mtime.tv_sec = ::archive_entry_mtime(raw);
    const long nsec = ::archive_entry_mtime_nsec(raw);
    entry.mtime.tv_nsec = nsec >= 0 && nsec < 1'000'000'000 ? nsec : 0;
    entry.device = ::archive_entry_rdev(raw);
    const char* target = entry.type == entry_type::hardlink  ? ::archive_entry_hardlink(raw)
                         : entry.type == entry_type::symlink ? ::archive_entry_symlink(raw)
                                                             : "";
    if (target == nullptr) return bad(entry.name, "its link target is not readable");
    entry.target = target;
    if (entry.type == entry_type::file && ::archive_entry_size(raw) > 0)
        entry.size = static_cast<std::uint64_t>(::archive_entry_size(raw));
    ::archive_entry_xattr_reset(raw);
    const char* key = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    while (::archive_entry_xattr_next(raw, &key, &value, &size) == ARCHIVE_OK)
        entry.xattrs.emplace_back(key, std::string(static_cast<const char*>(value), size));
    return entry;
}

/// A warning about a name means that its bytes were changed; other warnings (owner names) concern nothing that is used.
bool concerns_name(archive* reader) {
    const char* why = ::archive_error_string(reader);
    const std::string_view text = why != nullptr ? why : "";
    return text.starts_with("Pathname") || text.starts_with("Linkname");
}

result<void> apply_all(archive* reader, const reader_context& context, applier& layer) {
    std::string last = "(the start)";
    const auto failure = [&](std::string_view what) {
        return context.failure ? *context.failure : archive_failure(reader, what);
    };
    while (true) {
        archive_entry* raw = nullptr;
        const int status = ::archive_read_next_header(reader, &raw);
        if (status == ARCHIVE_EOF) return {};
        if (status != ARCHIVE_OK && (status != ARCHIVE_WARN || concerns_name(reader)))
            return failure("tar entry after " + last);
        GANTRY_TRY(const auto entry, convert(raw));
        last = quote(entry.name);
        GANTRY_CHECK(layer.apply(entry, [&](data_block& block) -> result<bool> {
            const void* bytes = nullptr;
            la_int64_t offset = 0;
            const int got = ::archive_read_data_block(reader, &bytes, &block.size, &offset);
            if (got == ARCHIVE_EOF) return false;
            if (got < ARCHIVE_WARN) return failure("its data");
            block.bytes = static_cast<const char*>(bytes);
            block.offset = static_cast<std::uint64_t>(offset);
            return true;
        }));
    }
}

} // namespace

result<layer_summary> untar(const byte_stream& stream, applier& layer) {
    reader_context context{stream, {}};
    const auto reader = tar_reader();
    if (::archive_read_open(reader.get(), &context, nullptr, read_stream, nullptr) != ARCHIVE_OK)
        return context.failure ? *context.failure : archive_failure(reader.get(), "tar");
    GANTRY_CHECK(apply_all(reader.get(), context, layer));
    while (true) {
        GANTRY_TRY(const auto rest, stream());
        if (rest.empty()) break;
    }
    return layer.finish();
}

result<void> prepare_untar() {
    if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr && std::setlocale(LC_CTYPE, "C.utf8") == nullptr)
        return error{.code = code::unavailable, .message = "the system has no C.UTF-8 locale (libc-bin)"};
    return {};
}

} // namespace gantry::cri_helper
