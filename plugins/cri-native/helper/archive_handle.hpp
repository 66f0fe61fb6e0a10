// A libarchive reader for tar streams, with errors as ours.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <archive.h>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

struct archive_closer {
    void operator()(archive* a) const noexcept { ::archive_read_free(a); }
};
using archive_handle = std::unique_ptr<archive, archive_closer>;

/// A reader that knows tar and nothing else: no other format, no filter.
inline archive_handle tar_reader() {
    archive_handle reader(::archive_read_new());
    ::archive_read_support_format_tar(reader.get());
    ::archive_read_support_format_empty(reader.get());
    return reader;
}

inline error archive_failure(archive* reader, std::string_view what) {
    const char* why = ::archive_error_string(reader);
    return {.code = code::invalid, .message = std::string(what) + ": " + (why != nullptr ? why : "unknown reason")};
}

} // namespace gantry::cri_helper
