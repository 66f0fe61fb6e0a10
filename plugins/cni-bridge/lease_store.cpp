#include "plugins/cni-bridge/lease_store.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/files.hpp"
#include "base/json.hpp"

namespace gantry::cni_bridge {

namespace {

namespace json = base::json;
constexpr std::size_t file_limit = 1 << 20;

json::value to_json(const lease& l) {
    json::array addresses;
    for (const auto& address : l.addresses) addresses.emplace_back(address.text());
    json::array ports;
    for (const auto& port : l.ports) {
        json::object one{{"protocol", protocol_name(port.protocol)},
                         {"hostPort", port.host_port},
                         {"containerPort", port.container_port}};
        if (port.host_ip) one["hostIP"] = port.host_ip->text();
        ports.emplace_back(std::move(one));
    }
    return json::object{{"containerID", l.container_id}, {"ifname", l.ifname}, {"pod", l.pod},
                        {"addresses", addresses},        {"ports", ports},     {"sandbox", l.sandbox}};
}

result<port_mapping> port_from(const json::value& from) {
    port_mapping port;
    const auto protocol = protocol_number(from.at("protocol").as_string());
    if (!protocol) return error{.code = code::invalid, .message = "unknown protocol"};
    port.protocol = *protocol;
    port.host_port = from.at("hostPort").to_number<std::uint16_t>();
    port.container_port = from.at("containerPort").to_number<std::uint16_t>();
    if (const auto* ip = from.as_object().if_contains("hostIP")) {
        GANTRY_TRY(port.host_ip, netlink::ip_address::parse(ip->as_string()));
    }
    return port;
}

result<lease> from_json(const std::string& text, const std::string& path) {
    GANTRY_TRY(const auto document, base::parse_json(text, path));
    try {
        lease l;
        l.container_id = document.at("containerID").as_string();
        l.ifname = document.at("ifname").as_string();
        l.pod = document.at("pod").as_string();
        l.sandbox = document.at("sandbox").as_string();
        for (const auto& one : document.at("addresses").as_array()) {
            GANTRY_TRY(auto address, netlink::ip_address::parse(one.as_string()));
            l.addresses.push_back(address);
        }
        for (const auto& one : document.at("ports").as_array()) {
            GANTRY_TRY(auto port, port_from(one));
            l.ports.push_back(port);
        }
        return l;
    } catch (const std::exception& fault) {
        return error{.code = code::invalid, .message = path + ": " + fault.what()};
    }
}

} // namespace

std::string lease_store::path_of(const lease& l) const {
    // A container id has no comma (CNI 1.1 section 2), an interface name no slash.
    return directory_ + "/" + l.container_id + "," + l.ifname;
}

result<lease_store::contents> lease_store::load() const {
    GANTRY_CHECK(base::make_dirs(directory_));
    GANTRY_TRY(const auto names, base::list_dir(directory_));
    contents found;
    for (const auto& name : names) {
        const std::string path = directory_ + "/" + name;
        GANTRY_TRY(const auto text, base::read_file(path, file_limit));
        auto parsed = from_json(text, path);
        if (parsed && path_of(*parsed) == path) {
            found.leases.push_back(*std::move(parsed));
            continue;
        }
        if (::unlink(path.c_str()) != 0) return sys_error("remove " + path, errno);
        found.dropped.push_back(parsed ? path + " is not a lease's name" : parsed.error().message);
    }
    return found;
}

result<void> lease_store::save(const lease& l) const {
    return base::write_file_atomic(path_of(l), base::to_text(to_json(l)));
}

result<void> lease_store::remove(const lease& l) const {
    const std::string path = path_of(l);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return sys_error("remove " + path, errno);
    return {};
}

} // namespace gantry::cni_bridge
