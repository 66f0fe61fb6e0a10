// Who a container's processes are: the request's ids, or the image's USER, looked up in the image's passwd and group
// files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_native {

/// What decides the identity, from CRI's security context and the image's config.
struct user_request {
    std::optional<std::int64_t> run_as_user{};
    std::string run_as_username{}; ///< used when run_as_user is absent
    std::optional<std::int64_t> run_as_group{};
    std::vector<std::int64_t> supplemental_groups{};
    bool merge_image_groups = true; ///< SupplementalGroupsPolicy Merge
    std::string image_user{}; ///< OCI config.User: "", "user" or "user:group"; used when nothing above names a user
    std::string image{};      ///< name of the image, for messages
};

struct identity {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::vector<std::uint32_t> groups{}; ///< what setgroups(2) gets: gid first, no duplicates
    std::string home = "/";
};

/// A user or group id as digits only: no sign, blank or base prefix, at most 4294967294 (the last value is (uid_t)-1,
/// which the kernel reads as "leave it"). nullopt for everything else.
std::optional<std::uint32_t> parse_id(std::string_view text);

/// Resolves a request against the text of the image's /etc/passwd and /etc/group, both empty when the image has none.
/// Numeric ids need no entry (gid 0, home "/"); a name without one is code::invalid. Lines that are not well formed are
/// skipped, as getpwent(3) does. [any]
result<identity> resolve_user(const user_request& request, std::string_view passwd, std::string_view group);

} // namespace gantry::cri_native
