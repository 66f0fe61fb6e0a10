// The archive that carries images: a tar on disk whose members are addressed by offset, so that layers are read in
// place and in parallel.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

struct member {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::string link; ///< another member's path: old `docker save` links equal layers
};

class archive_file {
public:
    /// Indexes the archive. A pipe, or one that is compressed as a whole, is first spooled to an unnamed file in
    /// `spool`, at most spool_limit bytes. fd: borrowed.
    static result<archive_file> open(int fd, const char* spool, std::uint64_t spool_limit);

    int fd() const noexcept { return fd_; }
    bool has(std::string_view path) const { return find(path).has_value(); }
    /// By clean path, links followed.
    std::optional<member> find(std::string_view path) const;
    /// The bytes of a small member; code::invalid when there is none, code::resource when it is larger than limit.
    result<std::string> read(std::string_view path, std::uint64_t limit) const;
    result<std::string> read(const member& item, std::string_view name, std::uint64_t limit) const;

private:
    result<void> index();

    base::unique_fd spooled_;
    int fd_ = -1;
    std::map<std::string, member, std::less<>> members_;
};

} // namespace gantry::cri_helper
