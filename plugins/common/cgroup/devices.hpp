// Which devices the processes of a cgroup may make and open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::cgroup {

/// As in the OCI runtime specification, config-linux "Allowed Device list".
struct device_rule {
    bool allow = false;
    char type = 'a';                      ///< 'a' all, 'b' block, 'c' character
    std::optional<std::uint32_t> major{}; ///< absent: any
    std::optional<std::uint32_t> minor{}; ///< absent: any
    std::string access = "rwm";           ///< of r(ead) w(rite) m(knod)
};

/// The v1 line for devices.allow or devices.deny: "c 1:3 rwm". Pure. [any]
std::string v1_device_line(const device_rule& rule);

/// The instructions (struct bpf_insn, 8 bytes each) of a BPF_PROG_TYPE_CGROUP_DEVICE program that applies the rules:
/// the last one that matches decides, none means denied. Pure. [any]
result<std::vector<std::uint64_t>> device_program(const std::vector<device_rule>& rules);

/// Attaches the rules to the v2 group behind the directory fd, in place of what was attached before, with no moment in
/// between without a policy. [worker]
result<void> attach_device_program(int group_fd, const std::vector<device_rule>& rules);

} // namespace gantry::cgroup
