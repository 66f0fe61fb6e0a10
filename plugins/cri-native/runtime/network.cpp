#include "plugins/cri-native/runtime/network.hpp"

#include "base/json.hpp"

namespace gantry::cri_native {

namespace {

namespace json = base::json;
namespace cri = runtime::v1;

std::string_view protocol_name(cri::Protocol protocol) {
    switch (protocol) {
    case cri::UDP: return "udp";
    case cri::SCTP: return "sctp";
    default: return "tcp";
    }
}

/// False for an address of an interface that the result says is the host's.
bool in_sandbox(const json::object& result, const json::object& address) {
    const auto* index = address.if_contains("interface");
    const auto* interfaces = result.if_contains("interfaces");
    if (index == nullptr || !index->is_number() || interfaces == nullptr || !interfaces->is_array()) return true;
    const auto& list = interfaces->get_array();
    const auto number = index->to_number<std::size_t>();
    if (number >= list.size() || !list[number].is_object()) return true;
    const auto* sandbox = list[number].get_object().if_contains("sandbox");
    return sandbox != nullptr && sandbox->is_string() && !sandbox->get_string().empty();
}

} // namespace

std::string network_request(const std::string& sandbox_id, const cri::PodSandboxConfig& config) {
    json::object args;
    args["K8S_POD_NAMESPACE"] = config.metadata().namespace_();
    args["K8S_POD_NAME"] = config.metadata().name();
    args["K8S_POD_UID"] = config.metadata().uid();
    args["K8S_POD_INFRA_CONTAINER_ID"] = sandbox_id;
    json::array ports;
    for (const auto& mapping : config.port_mappings()) {
        if (mapping.host_port() <= 0) continue;
        json::object port;
        port["hostPort"] = mapping.host_port();
        port["containerPort"] = mapping.container_port();
        port["protocol"] = protocol_name(mapping.protocol());
        if (!mapping.host_ip().empty()) port["hostIP"] = mapping.host_ip();
        ports.push_back(std::move(port));
    }
    json::object runtime_config;
    if (!ports.empty()) runtime_config["portMappings"] = std::move(ports);
    json::object request;
    request["containerID"] = sandbox_id;
    request["ifname"] = "eth0";
    request["args"] = std::move(args);
    request["runtimeConfig"] = std::move(runtime_config);
    return base::to_text(request);
}

result<std::vector<std::string>> addresses_of(std::string_view cni_result) {
    GANTRY_TRY(const auto document, base::parse_json(cni_result, "result of network ADD"));
    std::vector<std::string> addresses;
    const auto* object = document.if_object();
    const auto* ips = object != nullptr ? object->if_contains("ips") : nullptr;
    if (ips != nullptr && ips->is_array()) {
        for (const auto& entry : ips->get_array()) {
            if (!entry.is_object() || !in_sandbox(*object, entry.get_object())) continue;
            const auto* address = entry.get_object().if_contains("address");
            if (address == nullptr || !address->is_string()) continue;
            const std::string_view text = address->get_string();
            addresses.emplace_back(text.substr(0, text.find('/')));
        }
    }
    if (addresses.empty())
        return error{.code = code::internal,
                     .message = "the network plugin's ADD gave the pod no address; its result was " +
                                std::string(cni_result.substr(0, 512))};
    return addresses;
}

} // namespace gantry::cri_native
