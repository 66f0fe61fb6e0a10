// What a container runs: command line, environment and stop signal, merged from the CRI request and the image's config.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_native {

inline constexpr std::string_view default_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Kubernetes' rule: a command replaces the image's entrypoint and cmd, args alone replace cmd. An image entrypoint of
/// one empty string is none (that is how a Dockerfile resets it). code::invalid when nothing is left to run.
result<std::vector<std::string>> merge_command(const std::vector<std::string>& command,
                                               const std::vector<std::string>& args,
                                               const std::vector<std::string>& image_entrypoint,
                                               const std::vector<std::string>& image_cmd, std::string_view image);

struct environment_request {
    std::string hostname{};
    bool tty = false;
    std::string home{};                                           ///< exported as HOME unless image or request do
    std::vector<std::string> image_env{};                         ///< NAME=value
    std::vector<std::pair<std::string, std::string>> variables{}; ///< of the request, in order; the last of a name wins
};

/// NAME=value in a stable order: PATH, HOSTNAME, TERM (with a tty), the image's, the request's, HOME. Later ones
/// replace earlier ones in place. Values are opaque bytes. code::invalid for a name that is empty or holds '=' or NUL,
/// and for a value with NUL.
result<std::vector<std::string>> merge_environment(const environment_request& request);

/// The value of a variable in NAME=value strings.
std::optional<std::string_view> find_variable(const std::vector<std::string>& environment, std::string_view name);

/// Fails with code::invalid when execve(2) would refuse the sizes with E2BIG, saying which and what to do: one string
/// is limited to 128 KiB, all of them with their pointers to a quarter of the stack limit, at most 6 MiB.
result<void> check_exec_size(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                             std::size_t stack_limit);

/// A signal's number from "SIGTERM", "TERM", "15", "SIGRTMIN+3" or "RTMAX-1"; 0 if it is none. Case does not matter.
int parse_signal(std::string_view text);

} // namespace gantry::cri_native
