#include "core/kernel/pod_record.hpp"

#include "base/json.hpp"
#include "core/pod/names.hpp"
#include "gantry/model/json.hpp"

namespace gantry::core {

namespace json = base::json;

namespace {

constexpr int nanoseconds_digits = 9;

base::wall_time time(const json::object& in, std::string_view key) {
    return base::parse_rfc3339(base::string_at(in, key)).value_or(base::wall_time{});
}

} // namespace

std::string encode(const pod_record& record) {
    json::object out;
    out["namespace"] = record.namespace_;
    out["name"] = record.name;
    out["startTime"] = base::format_rfc3339(record.start_time, nanoseconds_digits);
    out["admitted"] = record.admitted;
    json::object restarts;
    for (const auto& [container, b] : record.restarts)
        restarts[container] = {{"key", to_hex(b.key)},
                               {"delayMs", b.delay.count()},
                               {"lastStep", base::format_rfc3339(b.last_step, nanoseconds_digits)}};
    out["restarts"] = std::move(restarts);
    if (record.final_status) out["status"] = model::to_json(*record.final_status);
    return base::to_text(out);
}

result<pod_record> decode_record(std::string_view bytes) {
    GANTRY_TRY(const auto value, base::parse_json(bytes, "pod record"));
    const auto* in = value.if_object();
    if (in == nullptr) return error{.code = code::invalid, .message = "pod record: not an object"};
    pod_record out;
    out.namespace_ = base::string_at(*in, "namespace");
    out.name = base::string_at(*in, "name");
    out.start_time = time(*in, "startTime");
    if (const auto* admitted = in->if_contains("admitted")) out.admitted = admitted->is_bool() && admitted->get_bool();
    if (const auto* restarts = in->if_contains("restarts"); restarts != nullptr && restarts->is_object())
        for (const auto& [container, entry] : restarts->get_object()) {
            const auto* fields = entry.if_object();
            const auto* delay = fields != nullptr ? fields->if_contains("delayMs") : nullptr;
            if (delay == nullptr || !delay->is_int64()) continue;
            out.restarts[std::string(container)] = {.key = from_hex(base::string_at(*fields, "key")),
                                                    .delay = std::chrono::milliseconds(delay->get_int64()),
                                                    .last_step = time(*fields, "lastStep")};
        }
    if (const auto* status = in->if_contains("status"))
        out.final_status = std::make_shared<const model::pod_status>(model::status_from_json(*status));
    return out;
}

} // namespace gantry::core
