#include "plugins/cri-native/runtime/spec/capabilities.hpp"

#include <linux/capability.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace gantry::cri_native {

namespace {

// In the order of their numbers in linux/capability.h.
constexpr std::string_view names[] = {
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
};
static_assert(names[CAP_SETFCAP] == "SETFCAP" && std::size(names) == CAP_CHECKPOINT_RESTORE + 1);

constexpr capability_mask bit(int number) { return capability_mask{1} << number; }

std::string upper(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::toupper(c); });
    return result;
}

struct named_set {
    bool all = false;
    capability_mask mask = 0;
};

result<named_set> parse_set(const std::vector<std::string>& list, std::string_view field) {
    named_set set;
    for (const auto& name : list) {
        if (upper(name) == "ALL" || upper(name) == "CAP_ALL") {
            set.all = true;
            continue;
        }
        const auto number = parse_capability(name);
        if (!number)
            return error{.code = code::invalid,
                         .message = std::string(field) + " names \"" + name + "\", which is no Linux capability"};
        set.mask |= bit(*number);
    }
    return set;
}

} // namespace

capability_mask default_capabilities() {
    return bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_FSETID) | bit(CAP_FOWNER) | bit(CAP_MKNOD) |
           bit(CAP_NET_RAW) | bit(CAP_SETGID) | bit(CAP_SETUID) | bit(CAP_SETFCAP) | bit(CAP_SETPCAP) |
           bit(CAP_NET_BIND_SERVICE) | bit(CAP_SYS_CHROOT) | bit(CAP_KILL) | bit(CAP_AUDIT_WRITE);
}

std::optional<int> parse_capability(std::string_view name) {
    const std::string text = upper(name);
    std::string_view bare = text;
    if (bare.substr(0, 4) == "CAP_") bare.remove_prefix(4);
    const auto* const found = std::find(std::begin(names), std::end(names), bare);
    if (found == std::end(names)) return std::nullopt;
    return static_cast<int>(found - std::begin(names));
}

std::string capability_name(int number) {
    if (number < 0 || number >= static_cast<int>(std::size(names))) return "CAP_" + std::to_string(number);
    return "CAP_" + std::string(names[number]);
}

result<capability_sets> resolve_capabilities(const capability_request& request) {
    capability_sets sets;
    if (request.privileged) {
        sets.bounding = request.available;
        return sets;
    }
    GANTRY_TRY(const auto add, parse_set(request.add, "capabilities.add"));
    GANTRY_TRY(const auto drop, parse_set(request.drop, "capabilities.drop"));
    GANTRY_TRY(const auto ambient, parse_set(request.add_ambient, "capabilities.add_ambient"));
    capability_mask wanted = default_capabilities();
    if (add.all) wanted = request.available;
    if (drop.all) wanted = 0;
    const capability_mask by_name = (add.mask | ambient.mask) & ~drop.mask;
    wanted = (wanted | by_name) & ~drop.mask;
    sets.bounding = wanted & request.available;
    sets.ambient = ambient.mask & sets.bounding;
    sets.missing = by_name & ~request.available;
    return sets;
}

} // namespace gantry::cri_native
