// Image references: parsing and the defaults that every Kubernetes runtime applies (docker.io, library/, :latest).
#pragma once

#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::images {

struct reference {
    std::string domain; ///< docker.io, registry.example.com:5000
    std::string path;   ///< library/busybox
    std::string tag;    ///< empty when only a digest was given
    std::string digest; ///< sha256:HEX or empty; with a digest the tag does not select anything

    std::string name() const { return domain + "/" + path; }
    /// docker.io/library/busybox:demo or, with a digest, docker.io/library/busybox@sha256:...
    std::string canonical() const { return digest.empty() ? name() + ":" + tag : name() + "@" + digest; }

    bool operator==(const reference&) const = default;
};

/// Parses and normalises. Errors are code::invalid with detail {"reason":"InvalidImageName"} and say which part of the
/// reference breaks which rule (distribution-spec "Pulling manifests"; at most 255 bytes of name, 128 of tag). [any]
result<reference> parse_reference(std::string_view text);

/// True for "sha256:" + 64 lower-case hex digits.
bool is_digest(std::string_view text) noexcept;

} // namespace gantry::images
