#include "gantry/model/json.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "codec.hpp"

namespace gantry::model {

namespace codec {

std::string json_key(std::string_view member) {
    constexpr std::pair<std::string_view, std::string_view> acronyms[] = {
        {"ip", "IP"}, {"ips", "IPs"}, {"id", "ID"}, {"pid", "PID"}, {"ipc", "IPC"}, {"fqdn", "FQDN"}};
    std::string out;
    while (!member.empty()) {
        const auto end = std::min(member.find('_'), member.size());
        const auto word = member.substr(0, end);
        member.remove_prefix(std::min(end + 1, member.size()));
        if (out.empty()) {
            out = word;
            continue;
        }
        const auto at = out.size();
        out += word;
        if (!word.empty()) out[at] = static_cast<char>(out[at] - 'a' + 'A');
        for (const auto& [lower, upper] : acronyms)
            if (word == lower) out.replace(at, word.size(), upper);
    }
    return out;
}

void reader::wrong(const json::value& in, std::string_view detail) {
    std::string shown = json::serialize(in);
    constexpr std::size_t limit = 120;
    if (shown.size() > limit) shown = shown.substr(0, limit) + "...";
    errors_.push_back({.type = field_error::kind::invalid,
                       .field = path_.empty() ? "(root)" : path_,
                       .value = std::move(shown),
                       .detail = std::string(detail)});
}

void reader::read(const json::value& in, std::string& out) {
    if (const auto* text = in.if_string())
        out.assign(text->data(), text->size());
    else
        wrong(in, "must be a string");
}

void reader::read(const json::value& in, bool& out) {
    if (const auto* flag = in.if_bool())
        out = *flag;
    else
        wrong(in, "must be true or false");
}

void reader::read(const json::value& in, std::int64_t& out) {
    if (const auto* number = in.if_int64()) {
        out = *number;
    } else if (const auto* real = in.if_double();
               real != nullptr && std::trunc(*real) == *real && std::abs(*real) <= 9007199254740992.0) {
        out = static_cast<std::int64_t>(*real);
    } else {
        wrong(in, "must be a whole number");
    }
}

void reader::read(const json::value& in, std::int32_t& out) {
    std::int64_t wide = 0;
    read(in, wide);
    if (wide < std::numeric_limits<std::int32_t>::min() || wide > std::numeric_limits<std::int32_t>::max())
        return wrong(in, "must fit in 32 bits");
    out = static_cast<std::int32_t>(wide);
}

void reader::read(const json::value& in, quantity& out) {
    std::string text;
    if (const auto* string = in.if_string()) {
        text.assign(string->data(), string->size());
    } else if (in.is_int64() || in.is_uint64()) {
        text = json::serialize(in);
    } else if (const auto* real = in.if_double()) {
        char digits[64];
        text.assign(digits, std::to_chars(digits, digits + sizeof(digits), *real).ptr);
    } else {
        return wrong(in, "must be a quantity: a number, or a string like \"250m\" or \"64Mi\"");
    }
    auto parsed = quantity::parse(text);
    if (!parsed) return wrong(in, parsed.error().message);
    out = *parsed;
}

void reader::read(const json::value& in, raw_json& out) {
    const bool holds_nothing = (in.is_array() && in.get_array().empty());
    if (!holds_nothing) out.text = json::serialize(in);
}

json::value write(const std::string& in) { return json::string(in); }
json::value write(const quantity& in) { return json::string(in.to_string()); }
namespace {

/// Text that this file has serialised: as deep as the reader's callers allow, and never malformed.
json::value reparse(const std::string& text) {
    json::parse_options options;
    options.max_depth = 256;
    return json::parse(text, {}, options);
}

} // namespace

json::value write(const raw_json& in) { return reparse(*in.text); }

void put_unknown(json::object& out, const unknown_fields& in) {
    if (!in) return;
    const json::value rest = reparse(*in);
    for (const auto& [key, value] : rest.get_object()) out[key] = value;
}

} // namespace codec

pod pod_from_json(const boost::json::value& json, field_errors& errors) {
    pod out;
    out.api_version.clear();
    out.kind.clear();
    codec::reader(errors).read(json, out);
    return out;
}

boost::json::value to_json(const pod& object) { return codec::write(object); }
boost::json::value to_json(const pod_status& status) { return codec::write(status); }
boost::json::value to_json(const resource_requirements& resources) { return codec::write(resources); }

pod_status status_from_json(const boost::json::value& json) {
    field_errors ignored;
    pod_status out;
    codec::reader(ignored).read(json, out);
    return out;
}

} // namespace gantry::model
