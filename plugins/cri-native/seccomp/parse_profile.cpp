#include <cctype>
#include <map>
#include <optional>

#include "base/invalid.hpp"
#include "base/json.hpp"
#include "plugins/cri-native/runtime/spec/capabilities.hpp"
#include "plugins/cri-native/seccomp/profile.hpp"

namespace gantry::seccomp {

namespace {

namespace json = base::json;

std::string_view text_of(const json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : std::string_view{};
}

std::optional<std::uint64_t> number_of(const json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || !value->is_number()) return std::nullopt;
    if (value->is_int64() && value->get_int64() < 0) return static_cast<std::uint64_t>(value->get_int64());
    return value->to_number<std::uint64_t>();
}

/// The strings of an array member; missing or null is an empty list.
result<std::vector<std::string>> list_of(const json::object& object, std::string_view key) {
    std::vector<std::string> list;
    const auto* value = object.if_contains(key);
    if (value == nullptr || value->is_null()) return list;
    if (!value->is_array()) return invalid(std::string(key) + " is not an array");
    for (const auto& entry : value->get_array()) {
        if (!entry.is_string()) return invalid(std::string(key) + " holds something that is no string");
        list.emplace_back(entry.get_string());
    }
    return list;
}

result<action> action_of(std::string_view name) {
    static const std::map<std::string_view, action> actions = {
        {"SCMP_ACT_ALLOW", action::allow},
        {"SCMP_ACT_ERRNO", action::error},
        {"SCMP_ACT_KILL", action::kill_thread},
        {"SCMP_ACT_KILL_THREAD", action::kill_thread},
        {"SCMP_ACT_KILL_PROCESS", action::kill_process},
        {"SCMP_ACT_TRAP", action::trap},
        {"SCMP_ACT_TRACE", action::trace},
        {"SCMP_ACT_LOG", action::log},
        {"SCMP_ACT_NOTIFY", action::notify},
    };
    const auto found = actions.find(name);
    if (found == actions.end()) return invalid("action \"" + std::string(name) + "\" is unknown");
    if (found->second == action::notify)
        return error{.code = code::unsupported,
                     .message = "SCMP_ACT_NOTIFY needs a seccomp agent, which cri-native has not"};
    return found->second;
}

result<comparison> comparison_of(std::string_view name) {
    static const std::map<std::string_view, comparison> comparisons = {
        {"SCMP_CMP_NE", comparison::not_equal},           {"SCMP_CMP_LT", comparison::less},
        {"SCMP_CMP_LE", comparison::less_equal},          {"SCMP_CMP_EQ", comparison::equal},
        {"SCMP_CMP_GE", comparison::greater_equal},       {"SCMP_CMP_GT", comparison::greater},
        {"SCMP_CMP_MASKED_EQ", comparison::masked_equal},
    };
    const auto found = comparisons.find(name);
    if (found == comparisons.end()) return invalid("op \"" + std::string(name) + "\" is unknown");
    return found->second;
}

/// This machine as `includes.arches` names it, after Go's GOARCH.
constexpr std::string_view native_name =
#if defined(__x86_64__)
    "amd64";
constexpr std::string_view native_token = "SCMP_ARCH_X86_64";
#elif defined(__aarch64__)
    "arm64";
constexpr std::string_view native_token = "SCMP_ARCH_AARCH64";
#elif defined(__riscv)
    "riscv64";
constexpr std::string_view native_token = "SCMP_ARCH_RISCV64";
#elif defined(__s390x__)
    "s390x";
constexpr std::string_view native_token = "SCMP_ARCH_S390X";
#else
    "";
constexpr std::string_view native_token = "";
#endif

/// libseccomp's name for "SCMP_ARCH_X86_64".
std::string architecture_name(std::string_view token) {
    constexpr std::string_view prefix = "SCMP_ARCH_";
    if (token.starts_with(prefix)) token.remove_prefix(prefix.size());
    std::string name(token);
    for (auto& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name;
}

struct condition {
    bool any_capability = false; ///< one of the listed is held
    bool all_capabilities = true;
    bool architecture = false; ///< this one is listed
    bool has_capabilities = false;
    bool has_architectures = false;
};

result<condition> condition_of(const json::object& syscall, std::string_view key, std::uint64_t capabilities) {
    condition made;
    const auto* value = syscall.if_contains(key);
    if (value == nullptr || value->is_null()) return made;
    if (!value->is_object()) return invalid(std::string(key) + " is not an object");
    GANTRY_TRY(const auto caps, list_of(value->get_object(), "caps"));
    for (const auto& name : caps) {
        const auto number = cri_native::parse_capability(name);
        if (!number) return invalid(std::string(key) + ".caps names \"" + name + "\", which is no Linux capability");
        const bool held = (capabilities >> *number & 1) != 0;
        made.any_capability = made.any_capability || held;
        made.all_capabilities = made.all_capabilities && held;
    }
    made.has_capabilities = !caps.empty();
    GANTRY_TRY(const auto arches, list_of(value->get_object(), "arches"));
    for (const auto& name : arches) made.architecture = made.architecture || name == native_name;
    made.has_architectures = !arches.empty();
    return made;
}

/// Whether a syscall entry counts for this machine and these capabilities. minKernel is not looked at: every kernel
/// that gantry runs on is newer than the 4.8 that profiles ask for.
result<bool> applies(const json::object& syscall, std::uint64_t capabilities) {
    GANTRY_TRY(const auto in, condition_of(syscall, "includes", capabilities));
    GANTRY_TRY(const auto out, condition_of(syscall, "excludes", capabilities));
    if (in.has_capabilities && !in.all_capabilities) return false;
    if (in.has_architectures && !in.architecture) return false;
    if (out.has_capabilities && out.any_capability) return false;
    return !(out.has_architectures && out.architecture);
}

result<std::vector<argument>> arguments_of(const json::object& syscall) {
    std::vector<argument> list;
    const auto* value = syscall.if_contains("args");
    if (value == nullptr || value->is_null()) return list;
    if (!value->is_array()) return invalid("args is not an array");
    for (const auto& entry : value->get_array()) {
        if (!entry.is_object()) return invalid("args holds something that is no object");
        const auto& object = entry.get_object();
        argument one;
        const auto index = number_of(object, "index");
        if (!index || *index > 5) return invalid("args.index is not between 0 and 5");
        one.index = static_cast<unsigned>(*index);
        one.value = number_of(object, "value").value_or(0);
        one.value_two = number_of(object, "valueTwo").value_or(0);
        GANTRY_TRY(one.op, comparison_of(text_of(object, "op")));
        list.push_back(one);
    }
    return list;
}

result<rule> rule_of(const json::object& syscall) {
    rule made;
    GANTRY_TRY(made.names, list_of(syscall, "names"));
    if (const auto name = text_of(syscall, "name"); !name.empty()) made.names.emplace_back(name);
    if (made.names.empty()) return invalid("names is empty");
    GANTRY_TRY(made.then, action_of(text_of(syscall, "action")));
    const auto number = number_of(syscall, "errnoRet").value_or(1);
    if (number > 4095) return invalid("errnoRet " + std::to_string(number) + " is no errno");
    made.error_number = static_cast<std::uint16_t>(number);
    GANTRY_TRY(made.when, arguments_of(syscall));
    return made;
}

result<std::vector<std::string>> architectures_of(const json::object& document) {
    std::vector<std::string> names;
    GANTRY_TRY(const auto listed, list_of(document, "architectures"));
    for (const auto& token : listed)
        if (token != native_token) names.push_back(architecture_name(token));
    const auto* map = document.if_contains("archMap");
    if (map == nullptr || !map->is_array()) return names;
    for (const auto& entry : map->get_array()) {
        if (!entry.is_object() || text_of(entry.get_object(), "architecture") != native_token) continue;
        GANTRY_TRY(const auto more, list_of(entry.get_object(), "subArchitectures"));
        for (const auto& token : more) names.push_back(architecture_name(token));
    }
    return names;
}

} // namespace

result<profile> parse_profile(std::string_view text, std::uint64_t capabilities) {
    GANTRY_TRY(const auto value, base::parse_json(text, "seccomp profile"));
    if (!value.is_object()) return invalid("the profile is not a JSON object");
    const auto& document = value.get_object();
    profile made;
    GANTRY_TRY(made.otherwise, action_of(text_of(document, "defaultAction")));
    const auto number = number_of(document, "defaultErrnoRet").value_or(1);
    if (number > 4095) return invalid("defaultErrnoRet " + std::to_string(number) + " is no errno");
    made.error_number = static_cast<std::uint16_t>(number);
    GANTRY_TRY(made.architectures, architectures_of(document));
    const auto* syscalls = document.if_contains("syscalls");
    if (syscalls == nullptr || syscalls->is_null()) return made;
    if (!syscalls->is_array()) return invalid("syscalls is not an array");
    int position = 0;
    for (const auto& entry : syscalls->get_array()) {
        const std::string place = "syscalls[" + std::to_string(position++) + "]";
        if (!entry.is_object()) return invalid(place + " is not an object");
        const auto counts = applies(entry.get_object(), capabilities);
        if (!counts) return invalid(place + "." + counts.error().message);
        if (!*counts) continue;
        auto rule = rule_of(entry.get_object());
        if (!rule) return error{.code = rule.error().code, .message = place + ": " + rule.error().message};
        made.rules.push_back(*std::move(rule));
    }
    return made;
}

} // namespace gantry::seccomp
