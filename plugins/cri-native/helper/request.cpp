#include "plugins/cri-native/helper/request.hpp"

#include "base/json.hpp"

namespace gantry::cri_helper {

namespace {

using base::json::object;

struct number {
    const char* key;
    std::uint64_t load_request::*field;
};
constexpr number numbers[] = {{"bytes", &load_request::bytes},
                              {"inodes", &load_request::inodes},
                              {"ratio", &load_request::ratio},
                              {"ratioFloor", &load_request::ratio_floor},
                              {"layers", &load_request::layers},
                              {"manifestBytes", &load_request::manifest_bytes},
                              {"configBytes", &load_request::config_bytes}};

} // namespace

std::string to_text(const load_request& request) {
    object out{{"ref", request.default_ref}, {"userXattr", request.user_xattr}, {"deviceNodes", request.device_nodes}};
    for (const auto& [key, field] : numbers) out[key] = request.*field;
    base::json::array known;
    for (const auto& layer : request.known)
        known.push_back(object{
            {"dir", layer.dir}, {"diffID", layer.diff_id}, {"chain", layer.chain}, {"opaqueRoot", layer.opaque_root}});
    out["known"] = std::move(known);
    return base::to_text(out);
}

result<load_request> parse_request(std::string_view text) {
    GANTRY_TRY(const auto value, base::parse_json(text, "load request"));
    try {
        const object& in = value.as_object();
        load_request request;
        request.default_ref = in.at("ref").as_string();
        request.user_xattr = in.at("userXattr").as_bool();
        request.device_nodes = in.at("deviceNodes").as_bool();
        for (const auto& [key, field] : numbers) request.*field = in.at(key).to_number<std::uint64_t>();
        for (const auto& item : in.at("known").as_array()) {
            const object& layer = item.as_object();
            request.known.push_back({std::string(layer.at("dir").as_string()),
                                     std::string(layer.at("diffID").as_string()),
                                     std::string(layer.at("chain").as_string()), layer.at("opaqueRoot").as_bool()});
        }
        return request;
    } catch (const std::exception& e) {
        return error{.code = code::invalid, .message = std::string("load request: ") + e.what()};
    }
}

} // namespace gantry::cri_helper
