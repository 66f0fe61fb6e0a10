// A seccomp profile as data: what the default one and the profiles of operators become before they are compiled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::seccomp {

enum class action { allow, error, kill_process, kill_thread, trap, trace, log, notify };

enum class comparison { not_equal, less, less_equal, equal, greater_equal, greater, masked_equal };

struct argument {
    unsigned index = 0; ///< 0 to 5
    comparison op = comparison::equal;
    std::uint64_t value = 0;     ///< masked_equal: the mask
    std::uint64_t value_two = 0; ///< masked_equal: what the masked argument must be
};

/// Syscalls by name; those that an architecture or the kernel's headers do not know are skipped. Conditions are and-ed,
/// but several on one argument are alternatives, as runc has it.
struct rule {
    std::vector<std::string> names{};
    action then = action::allow;
    std::uint16_t error_number = 1; ///< of action::error; EPERM
    std::vector<argument> when{};
};

struct profile {
    action otherwise = action::error;
    std::uint16_t error_number = 1;
    std::vector<std::string> architectures{}; ///< beside the native one, as libseccomp names them: "x86", "x32", "arm"
    std::vector<rule> rules{};
};

/// The profile of a container that asks for RuntimeDefault: equal in effect to Docker's and containerd's. capabilities:
/// bit N is capability N; some syscalls belong to those who hold one.
profile default_profile(std::uint64_t capabilities);

/// Reads a profile in the JSON form that Docker, containerd and CRI-O take (`defaultAction`, `architectures` or
/// `archMap`, `syscalls` with `includes` and `excludes`). code::invalid names what is wrong.
result<profile> parse_profile(std::string_view json, std::uint64_t capabilities);

/// The filter as struct sock_filter[]. [blocks for milliseconds]
result<std::string> compile(const profile& from);

} // namespace gantry::seccomp
