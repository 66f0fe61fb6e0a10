#include "plugins/cni-bridge/cni.hpp"

#include <algorithm>
#include <cctype>
#include <limits>

#include "base/json.hpp"
#include "plugins/cni-bridge/cni_error.hpp"

namespace gantry::cni_bridge {

namespace {

namespace json = base::json;

error invalid(std::string_view field, std::string_view why) {
    error e{.code = code::invalid, .message = std::string(field) + " " + std::string(why)};
    e.detail = base::to_text(
        json::object{{"field", field}, {"cniCode", std::to_string(static_cast<int>(cni_code::invalid_parameters))}});
    return e;
}

/// A name that files and messages can carry: CNI 1.1.0 section 2, "Parameters".
result<std::string> container_id_of(const json::object& from) {
    const auto* value = from.if_contains("containerID");
    if (!value || !value->is_string()) return invalid("containerID", "is missing or not a string");
    const std::string id(value->as_string());
    const auto plain = [](unsigned char c) { return std::isalnum(c) != 0; };
    const auto allowed = [&](unsigned char c) { return plain(c) || c == '_' || c == '.' || c == '-'; };
    if (id.empty() || id.size() > 128 || !plain(static_cast<unsigned char>(id[0])) ||
        !std::all_of(id.begin(), id.end(), allowed))
        return invalid("containerID",
                       "\"" + id + "\" must be 1-128 of A-Z a-z 0-9 _ . - and begin with a letter or digit");
    return id;
}

result<std::string> ifname_of(const json::object& from) {
    const auto* value = from.if_contains("ifname");
    if (!value || !value->is_string()) return invalid("ifname", "is missing or not a string");
    const std::string name(value->as_string());
    const auto allowed = [](unsigned char c) { return std::isgraph(c) != 0 && c != '/' && c != ':'; };
    if (name.empty() || name.size() > 15 || name == "." || name == ".." || name == "lo" ||
        !std::all_of(name.begin(), name.end(), allowed))
        return invalid("ifname", "\"" + name + "\" must be 1-15 visible characters without / and :, and not lo");
    return name;
}

result<std::uint16_t> port_at(const json::object& from, const std::string& field, std::string_view key) {
    const auto* value = from.if_contains(key);
    std::int64_t number = 0;
    if (value && value->is_int64()) number = value->as_int64();
    if (value && value->is_uint64())
        number = static_cast<std::int64_t>(
            std::min<std::uint64_t>(value->as_uint64(), std::numeric_limits<std::int32_t>::max()));
    if (value && !value->is_number()) return invalid(field, "is not a number");
    if (number < 0 || number > 65535) return invalid(field, std::to_string(number) + " is not a port (0-65535)");
    return static_cast<std::uint16_t>(number);
}

result<void> read_port(const json::value& from, const std::string& field, std::vector<port_mapping>& into) {
    if (!from.is_object()) return invalid(field, "is not an object");
    const auto& one = from.as_object();
    port_mapping port;
    GANTRY_TRY(port.host_port, port_at(one, field + ".hostPort", "hostPort"));
    if (port.host_port == 0) return {}; // a container port that is not published
    GANTRY_TRY(port.container_port, port_at(one, field + ".containerPort", "containerPort"));
    if (port.container_port == 0) return invalid(field + ".containerPort", "is missing or 0");
    std::string protocol = "tcp";
    if (const auto* value = one.if_contains("protocol"); value && value->is_string() && !value->as_string().empty())
        protocol = value->as_string();
    std::transform(protocol.begin(), protocol.end(), protocol.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto number = protocol_number(protocol);
    if (!number) return invalid(field + ".protocol", "\"" + protocol + "\" is none of tcp, udp, sctp");
    port.protocol = *number;
    if (const auto* value = one.if_contains("hostIP"); value && value->is_string() && !value->as_string().empty()) {
        const auto ip = netlink::ip_address::parse(value->as_string());
        if (!ip) return invalid(field + ".hostIP", ip.error().message);
        port.host_ip = *ip;
    }
    into.push_back(port);
    return {};
}

result<void> read_runtime_config(const json::object& from, add_request& into) {
    if (const auto* ports = from.if_contains("portMappings"); ports && !ports->is_null()) {
        if (!ports->is_array()) return invalid("runtimeConfig.portMappings", "is not an array");
        for (std::size_t i = 0; i < ports->as_array().size(); ++i)
            GANTRY_CHECK(
                read_port(ports->as_array()[i], "runtimeConfig.portMappings[" + std::to_string(i) + "]", into.ports));
    }
    if (const auto* ips = from.if_contains("ips"); ips && !ips->is_null()) {
        if (!ips->is_array()) return invalid("runtimeConfig.ips", "is not an array");
        for (std::size_t i = 0; i < ips->as_array().size(); ++i) {
            const std::string field = "runtimeConfig.ips[" + std::to_string(i) + "]";
            const auto& value = ips->as_array()[i];
            if (!value.is_string()) return invalid(field, "is not a string");
            const std::string text(value.as_string());
            const auto ip = netlink::ip_address::parse(text.substr(0, text.find('/')));
            if (!ip) return invalid(field, ip.error().message);
            into.wanted_addresses.push_back(*ip);
        }
    }
    return {};
}

std::string argument(const json::object& from, std::string_view key) {
    const auto* args = from.if_contains("args");
    if (!args || !args->is_object()) return {};
    const auto* value = args->as_object().if_contains(key);
    return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

result<json::object> object_from(std::string_view bytes) {
    auto document = base::parse_json(bytes, "CNI request");
    if (!document) return with_cni(std::move(document).error(), cni_code::decode_failure);
    if (!document->is_object())
        return cni_error(code::invalid, cni_code::decode_failure, "CNI request is not a JSON object");
    return std::move(document->as_object());
}

} // namespace

result<add_request> parse_request(std::string_view bytes) {
    GANTRY_TRY(const auto document, object_from(bytes));
    add_request request;
    GANTRY_TRY(request.container_id, container_id_of(document));
    GANTRY_TRY(request.ifname, ifname_of(document));
    const std::string pod = argument(document, "K8S_POD_NAME");
    if (!pod.empty()) request.pod = argument(document, "K8S_POD_NAMESPACE") + "/" + pod;
    if (const auto* config = document.if_contains("runtimeConfig"); config && !config->is_null()) {
        if (!config->is_object()) return invalid("runtimeConfig", "is not an object");
        GANTRY_CHECK(read_runtime_config(config->as_object(), request));
    }
    return request;
}

result<std::set<attachment>> parse_valid_attachments(std::string_view bytes) {
    GANTRY_TRY(const auto document, object_from(bytes));
    const auto* list = document.if_contains("cni.dev/valid-attachments");
    // Missing is not the same as empty: it must not free the whole node.
    if (!list || !list->is_array()) return invalid("cni.dev/valid-attachments", "is missing or not an array");
    std::set<attachment> valid;
    for (const auto& one : list->as_array()) {
        if (!one.is_object()) return invalid("cni.dev/valid-attachments", "has an element that is not an object");
        GANTRY_TRY(auto id, container_id_of(one.as_object()));
        GANTRY_TRY(auto ifname, ifname_of(one.as_object()));
        valid.emplace(std::move(id), std::move(ifname));
    }
    return valid;
}

std::string result_of(const attached& pod, const bridge& host) {
    constexpr int pod_interface = 2; // index in the list below
    json::array ips, routes;
    for (const auto& a : pod.links.addresses) {
        ips.push_back(
            json::object{{"address", a.address.text()}, {"gateway", a.gateway.text()}, {"interface", pod_interface}});
        routes.push_back(json::object{{"dst", a.gateway.v6 ? "::/0" : "0.0.0.0/0"}, {"gw", a.gateway.text()}});
    }
    json::array interfaces{
        json::object{{"name", host.name()}, {"mac", netlink::to_text(host.mac())}, {"mtu", host.mtu()}},
        json::object{{"name", pod.links.host_name}, {"mac", netlink::to_text(pod.links.host_mac)}, {"mtu", pod.mtu}},
        json::object{{"name", pod.links.ifname},
                     {"mac", netlink::to_text(pod.links.pod_mac)},
                     {"mtu", pod.mtu},
                     {"sandbox", pod.held.sandbox}}};
    return base::to_text(json::object{{"cniVersion", "1.1.0"},
                                      {"interfaces", std::move(interfaces)},
                                      {"ips", std::move(ips)},
                                      {"routes", std::move(routes)},
                                      {"dns", json::object()}});
}

} // namespace gantry::cni_bridge
