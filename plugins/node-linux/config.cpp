#include "plugins/node-linux/config.hpp"

#include <charconv>

#include "base/json.hpp"
#include "gantry/model/quantity.hpp"

namespace gantry::node_linux {

namespace {

namespace json = base::json;

error bad_field(std::string_view field, std::string_view why) {
    return {.code = code::invalid, .message = std::string(field) + ": " + std::string(why)};
}

std::string text_of(const json::value& value) {
    return value.is_string() ? std::string(value.get_string()) : base::to_text(value);
}

result<model::quantity> quantity_of(const json::value& value, const std::string& field) {
    auto parsed = model::quantity::parse(text_of(value));
    if (!parsed) return bad_field(field, "\"" + text_of(value) + "\": " + parsed.error().message);
    if (parsed->is_negative()) return bad_field(field, "\"" + text_of(value) + "\" is negative");
    return parsed;
}

result<void> add_amounts(const json::object& root, std::string_view member, amounts& out) {
    const auto* given = root.if_contains(member);
    if (given == nullptr) return {};
    for (const auto& [key, value] : given->as_object()) {
        const std::string field = std::string(member) + "." + std::string(key);
        GANTRY_TRY(const auto amount, quantity_of(value, field));
        if (key == "cpu")
            out.cpu_milli += amount.milli();
        else if (key == "memory")
            out.memory += amount.units();
        else if (key == "ephemeral-storage")
            out.ephemeral_storage += amount.units();
        else
            out.pids += amount.units(); // the schema knows no further key than "pid"
    }
    return {};
}

result<threshold> threshold_of(const json::value& value, const std::string& field) {
    const std::string text = text_of(value);
    if (!text.ends_with('%')) {
        GANTRY_TRY(const auto amount, quantity_of(value, field));
        return threshold{.bytes = amount.units()};
    }
    threshold out;
    const char* end = text.data() + text.size() - 1;
    const auto [stop, ec] = std::from_chars(text.data(), end, out.percent);
    if (ec != std::errc{} || stop != end || !(out.percent >= 0 && out.percent <= 100))
        return bad_field(field, "\"" + text + "\" is no percentage between 0% and 100%");
    return out;
}

/// "100ms", "0.1s", "5000us".
result<std::uint64_t> period_of(std::string_view text) {
    double number = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const double us = unit == "s" ? 1e6 : unit == "ms" ? 1e3 : unit == "us" || unit == "µs" ? 1 : 0;
    const double period = number * us;
    if (ec != std::errc{} || !(period >= 1000 && period <= 1e6))
        return bad_field("cpuCFSQuotaPeriod", "\"" + std::string(text) + "\" is no time between 1ms and 1s");
    return static_cast<std::uint64_t>(period);
}

result<void> read(const json::object& root, config& out) {
    GANTRY_CHECK(add_amounts(root, "systemReserved", out.reserved));
    GANTRY_CHECK(add_amounts(root, "kubeReserved", out.reserved));
    if (const auto* eviction = root.if_contains("evictionHard")) {
        for (const auto& [key, value] : eviction->as_object()) {
            GANTRY_TRY(const auto amount, threshold_of(value, "evictionHard." + std::string(key)));
            (key == "memory.available" ? out.memory_eviction : out.storage_eviction) = amount;
        }
    }
    if (const auto* path = root.if_contains("cgroupRoot")) {
        out.cgroup_root = path->as_string();
        if (out.cgroup_root == "/") out.cgroup_root.clear();
    }
    const auto number = [&](std::string_view key, std::int64_t& value) {
        if (const auto* given = root.if_contains(key)) value = given->as_int64();
    };
    number("maxPods", out.max_pods);
    number("podsPerCore", out.pods_per_core);
    number("podPidsLimit", out.pod_pids_limit);
    if (const auto* given = root.if_contains("cpuCFSQuota")) out.cpu_quota = given->as_bool();
    if (const auto* given = root.if_contains("cpuCFSQuotaPeriod")) {
        GANTRY_TRY(out.cpu_period_us, period_of(given->as_string()));
    }
    if (const auto* given = root.if_contains("enforceNodeAllocatable")) {
        out.enforce_allocatable = false;
        for (const auto& what : given->as_array()) out.enforce_allocatable |= what.as_string() == "pods";
    }
    return {};
}

} // namespace

std::int64_t threshold::of(std::int64_t capacity) const {
    return percent > 0 ? static_cast<std::int64_t>(static_cast<double>(capacity) * percent / 100) : bytes;
}

result<config> parse_config(std::string_view text) {
    GANTRY_TRY(const auto value, base::parse_json(text, "config"));
    config out;
    try {
        GANTRY_CHECK(read(value.as_object(), out));
    } catch (const std::exception& e) {
        return bad_field("config", std::string("a member has another type than the schema says: ") + e.what());
    }
    return out;
}

} // namespace gantry::node_linux
