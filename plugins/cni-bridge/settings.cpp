#include "plugins/cni-bridge/settings.hpp"

#include "base/json.hpp"
#include "plugins/cni-bridge/cni_error.hpp"

namespace gantry::cni_bridge {

namespace {

namespace json = base::json;

error invalid(std::string_view key, std::string_view why) {
    error e{.code = code::invalid, .message = "cni-bridge config: " + std::string(key) + ": " + std::string(why)};
    e.detail = base::to_text(
        json::object{{"field", key}, {"cniCode", std::to_string(static_cast<int>(cni_code::invalid_config))}});
    return e;
}

std::string text_at(const json::object& config, std::string_view key, std::string_view fallback = "") {
    const auto* value = config.if_contains(key);
    return value ? std::string(value->as_string()) : std::string(fallback);
}

bool flag_at(const json::object& config, std::string_view key, bool fallback) {
    const auto* value = config.if_contains(key);
    return value ? value->as_bool() : fallback;
}

/// An address of the subnet under `key`, or `fallback` when the key is absent or empty.
result<netlink::ip_address> address_at(const json::object& config, const std::string& key,
                                       const netlink::ip_network& subnet, const netlink::ip_address& fallback) {
    const std::string text = text_at(config, key);
    if (text.empty()) return fallback;
    const auto address = netlink::ip_address::parse(text);
    if (!address) return invalid(key, address.error().message);
    if (!subnet.contains(*address)) return invalid(key, text + " is not in subnet " + subnet.text());
    return *address;
}

result<std::optional<family_settings>> family_at(const json::object& config, const std::string& suffix,
                                                 std::string_view fallback) {
    const bool v6 = !suffix.empty();
    const std::string key = "subnet" + suffix;
    const std::string text = text_at(config, key, fallback);
    if (text.empty()) return std::optional<family_settings>{};
    const auto subnet = netlink::ip_network::parse(text);
    if (!subnet) return invalid(key, subnet.error().message);
    if (subnet->address.v6 != v6)
        return invalid(key, text + (v6 ? " is not an IPv6 network" : " is not an IPv4 network"));
    if (subnet->address != subnet->base())
        return invalid(key, text + " has bits beyond its prefix; write " +
                                netlink::ip_network{subnet->base(), subnet->prefix}.text());
    if (subnet->prefix > subnet->address.bits() - 2)
        return invalid(key, text + " is too small for a gateway and a pod; the longest prefix is /" +
                                std::to_string(subnet->address.bits() - 2));

    family_settings family{.subnet = *subnet, .gateway = {}, .first = {}, .last = {}};
    // The last IPv4 address is the broadcast address; distances beyond 64 bits do not matter to a pool of thousands.
    const netlink::ip_address low = subnet->base().plus(1);
    netlink::ip_address high = subnet->last();
    if (!v6) --high.raw[3]; // never borrows: the last address of a prefix <= 30 ends in a one
    GANTRY_TRY(family.gateway, address_at(config, "gateway" + suffix, *subnet, low));
    GANTRY_TRY(family.first, address_at(config, "rangeStart" + suffix, *subnet, low));
    GANTRY_TRY(family.last, address_at(config, "rangeEnd" + suffix, *subnet, high));
    if (family.gateway < low || high < family.gateway)
        return invalid("gateway" + suffix,
                       family.gateway.text() + " is the network or broadcast address of " + subnet->text());
    if (family.first < low || high < family.last || family.last < family.first)
        return invalid("rangeStart" + suffix, "the range " + family.first.text() + "-" + family.last.text() +
                                                  " must rise and lie within " + low.text() + "-" + high.text());
    if (family.first == family.last && family.first == family.gateway)
        return invalid("rangeStart" + suffix, "the range holds only the gateway " + family.gateway.text());
    return std::optional<family_settings>{family};
}

result<settings> from_json(const json::object& config) {
    settings s;
    GANTRY_TRY(s.v4, family_at(config, "", "10.88.0.0/16"));
    GANTRY_TRY(s.v6, family_at(config, "6", ""));
    if (!s.v4 && !s.v6) return invalid("subnet", "set subnet, subnet6 or both: pods need an address");
    s.mtu = config.contains("mtu") ? config.at("mtu").to_number<std::uint32_t>() : 0;
    if (s.mtu != 0 && s.mtu < (s.v6 ? 1280u : 576u))
        return invalid("mtu",
                       std::to_string(s.mtu) + " is below the minimum of " + (s.v6 ? "1280 for IPv6" : "576 for IPv4"));
    if (s.mtu > 65535) return invalid("mtu", std::to_string(s.mtu) + " is above 65535, the most a veth can carry");
    s.masquerade = flag_at(config, "masquerade", true);
    s.isolate = flag_at(config, "isolate", false);
    if (const auto* list = config.if_contains("nonMasqueradeCIDRs")) {
        for (const auto& one : list->as_array()) {
            const auto network = netlink::ip_network::parse(one.as_string());
            if (!network) return invalid("nonMasqueradeCIDRs", network.error().message);
            s.not_masqueraded.push_back({network->base(), network->prefix});
        }
    }
    return s;
}

} // namespace

std::vector<const family_settings*> settings::families() const {
    std::vector<const family_settings*> list;
    if (v4) list.push_back(&*v4);
    if (v6) list.push_back(&*v6);
    return list;
}

result<settings> parse_settings(std::string_view config) {
    auto document = base::parse_json(config, "cni-bridge config");
    if (!document) return with_cni(std::move(document).error(), cni_code::decode_failure);
    if (!document->is_object()) return invalid("config", "is not a JSON object");
    try {
        return from_json(document->as_object());
    } catch (const std::exception& fault) {
        return invalid("config", std::string("has a value of the wrong type: ") + fault.what());
    }
}

} // namespace gantry::cni_bridge
