#include "plugins/cri-native/helper/archive_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <vector>

#include <archive_entry.h>

#include "plugins/cri-native/helper/archive_handle.hpp"
#include "plugins/cri-native/helper/codec.hpp"
#include "plugins/cri-native/helper/entry_name.hpp"
#include "plugins/cri-native/helper/tree.hpp"

namespace gantry::cri_helper {

namespace {

constexpr std::size_t member_limit = 65536;
constexpr int link_limit = 8;

struct file_reader {
    int fd;
    std::uint64_t offset;
    std::vector<char> block;
};

la_ssize_t read_file_block(archive* reader, void* context, const void** bytes) {
    auto* file = static_cast<file_reader*>(context);
    ssize_t n;
    do n = ::pread(file->fd, file->block.data(), file->block.size(), static_cast<off_t>(file->offset));
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        ::archive_set_error(reader, errno, "read");
        return ARCHIVE_FATAL;
    }
    file->offset += static_cast<std::uint64_t>(n);
    *bytes = file->block.data();
    return n;
}

la_int64_t skip_in_file(archive*, void* context, la_int64_t count) {
    static_cast<file_reader*>(context)->offset += static_cast<std::uint64_t>(count);
    return count;
}

result<base::unique_fd> spool_to(const char* dir, int fd, std::string head, std::uint64_t limit) {
    base::unique_fd file(::open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!file) return sys_error("create a spool file", errno);
    GANTRY_TRY(const auto codec, make_decompressor(head));
    std::uint64_t size = 0;
    const byte_sink write = [&](std::string_view bytes) -> result<void> {
        if (bytes.size() > limit - size)
            return error{.code = code::resource,
                         .message = "the archive unpacks to more than " + std::to_string(limit) + " bytes"};
        if (!pwrite_all(file.get(), bytes.data(), bytes.size(), size)) return sys_error("write the spool file", errno);
        size += bytes.size();
        return {};
    };
    std::vector<char> block(256u << 10);
    for (std::string_view bytes = head; !bytes.empty();) {
        GANTRY_CHECK(codec->push(bytes, write));
        const ssize_t n = ::read(fd, block.data(), block.size());
        if (n < 0 && errno != EINTR) return sys_error("read the archive", errno);
        bytes = std::string_view(block.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    }
    GANTRY_CHECK(codec->finish());
    return file;
}

} // namespace

result<archive_file> archive_file::open(int fd, const char* spool, std::uint64_t spool_limit) {
    std::string head(512, '\0');
    std::size_t got = 0;
    while (got < head.size()) {
        const ssize_t n = ::read(fd, head.data() + got, head.size() - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sys_error("read the archive", errno);
        if (n == 0) break;
        got += static_cast<std::size_t>(n);
    }
    head.resize(got);
    archive_file file;
    // A file is read from its start, wherever its offset stood.
    const bool seekable = ::lseek(fd, 0, SEEK_CUR) >= 0;
    if (seekable && !is_compressed(head)) {
        file.fd_ = fd;
    } else {
        GANTRY_TRY(file.spooled_, spool_to(spool, fd, std::move(head), spool_limit));
        file.fd_ = file.spooled_.get();
    }
    GANTRY_CHECK(file.index());
    return file;
}

result<void> archive_file::index() {
    struct stat st {};
    if (::fstat(fd_, &st) != 0) return sys_error("stat the archive", errno);
    file_reader source{fd_, 0, std::vector<char>(64u << 10)};
    const auto reader = tar_reader();
    ::archive_read_set_callback_data(reader.get(), &source);
    ::archive_read_set_read_callback(reader.get(), read_file_block);
    ::archive_read_set_skip_callback(reader.get(), skip_in_file);
    if (::archive_read_open1(reader.get()) != ARCHIVE_OK) return archive_failure(reader.get(), "the archive");
    while (true) {
        archive_entry* raw = nullptr;
        const int status = ::archive_read_next_header(reader.get(), &raw);
        if (status == ARCHIVE_EOF) return {};
        if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return archive_failure(reader.get(), "the archive");
        const char* raw_name = ::archive_entry_pathname(raw);
        const auto name = parse_link_target(raw_name != nullptr ? raw_name : "");
        if (!name)
            return error{.code = code::invalid,
                         .message = "the archive has a member with a bad name: " + name.error().message};
        if (members_.size() >= member_limit)
            return error{.code = code::resource,
                         .message = "the archive has more than " + std::to_string(member_limit) + " members"};

        member item;
        const char* link = ::archive_entry_hardlink(raw);
        std::string target;
        if (link != nullptr) {
            target = link;
        } else if (::archive_entry_filetype(raw) == AE_IFLNK && ::archive_entry_symlink(raw) != nullptr) {
            target = (name->parent.empty() ? "" : name->parent + "/") + ::archive_entry_symlink(raw);
        } else if (::archive_entry_filetype(raw) == AE_IFREG) {
            item.offset = static_cast<std::uint64_t>(::archive_filter_bytes(reader.get(), 0));
            item.size = static_cast<std::uint64_t>(::archive_entry_size(raw));
            if (::archive_entry_sparse_count(raw) > 0)
                return error{.code = code::unsupported, .message = "member " + quote(raw_name) + " is sparse"};
            if (item.offset + item.size > static_cast<std::uint64_t>(st.st_size))
                return error{.code = code::invalid, .message = "the archive is cut short within " + quote(raw_name)};
        } else {
            continue;
        }
        if (!target.empty()) {
            const auto resolved = parse_link_target(target);
            if (!resolved) continue; // leads out of the archive: not a member, missed only if something needs it
            item.link = resolved->path();
        }
        members_.insert_or_assign(name->path(), std::move(item));
    }
}

std::optional<member> archive_file::find(std::string_view path) const {
    auto it = members_.find(path);
    for (int hop = 0; it != members_.end() && !it->second.link.empty(); ++hop)
        it = hop < link_limit ? members_.find(it->second.link) : members_.end();
    if (it == members_.end()) return std::nullopt;
    return it->second;
}

result<std::string> archive_file::read(std::string_view path, std::uint64_t limit) const {
    const auto item = find(path);
    if (!item) return error{.code = code::invalid, .message = "the archive has no " + quote(path)};
    return read(*item, path, limit);
}

result<std::string> archive_file::read(const member& item, std::string_view name, std::uint64_t limit) const {
    if (item.size > limit)
        return error{.code = code::resource,
                     .message = std::string(name) + " has " + std::to_string(item.size) + " bytes, the limit is " +
                                std::to_string(limit)};
    std::string bytes(item.size, '\0');
    for (std::size_t got = 0; got < bytes.size();) {
        const ssize_t n = ::pread(fd_, bytes.data() + got, bytes.size() - got, static_cast<off_t>(item.offset + got));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return sys_error("read " + std::string(name), n < 0 ? errno : EIO);
        got += static_cast<std::size_t>(n);
    }
    return bytes;
}

} // namespace gantry::cri_helper
