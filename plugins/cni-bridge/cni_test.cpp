#include "plugins/cni-bridge/cni.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "plugins/cni-bridge/cni_error.hpp"

namespace gantry::cni_bridge {
namespace {

std::string fault_of_request(std::string_view request) {
    const auto parsed = parse_request(request);
    return parsed ? "accepted" : parsed.error().message;
}

TEST(cni_request, reads_a_full_add) {
    const auto r = parse_request(R"({"containerID": "0a1B_c.d-e", "ifname": "eth0",
        "args": {"K8S_POD_NAMESPACE": "shop", "K8S_POD_NAME": "web", "K8S_POD_UID": "u"},
        "runtimeConfig": {"portMappings": [
            {"hostPort": 8080, "containerPort": 80, "protocol": "TCP"},
            {"hostPort": 53, "containerPort": 5353, "protocol": "udp", "hostIP": "127.0.0.1"},
            {"hostPort": 0, "containerPort": 81, "protocol": "tcp"},
            {"hostPort": 9, "containerPort": 9, "hostIP": ""}],
          "ips": ["10.88.0.9", "fd00::9/64"]}})");
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->container_id, "0a1B_c.d-e");
    EXPECT_EQ(r->ifname, "eth0");
    EXPECT_EQ(r->pod, "shop/web");
    ASSERT_EQ(r->ports.size(), 3u);
    EXPECT_EQ(to_text(r->ports[0]), "tcp 8080");
    EXPECT_EQ(to_text(r->ports[1]), "udp 127.0.0.1:53");
    EXPECT_EQ(r->ports[1].container_port, 5353);
    EXPECT_EQ(to_text(r->ports[2]), "tcp 9");
    ASSERT_EQ(r->wanted_addresses.size(), 2u);
    EXPECT_EQ(r->wanted_addresses[1].text(), "fd00::9");
}

TEST(cni_request, needs_no_more_than_container_and_interface) {
    const auto r = parse_request(R"({"containerID": "a", "ifname": "eth0", "runtimeConfig": null})");
    ASSERT_TRUE(r);
    EXPECT_TRUE(r->ports.empty());
    EXPECT_EQ(r->pod, "");
}

TEST(cni_request, refuses_names_that_files_or_the_kernel_cannot_carry) {
    const auto with_id = [](const std::string& id) { return R"({"containerID": ")" + id + R"(", "ifname": "eth0"})"; };
    for (const auto& id : {std::string(), std::string("../x"), std::string("-a"), std::string("a,b"),
                           std::string("a/b"), std::string("a b"), std::string(129, 'a'), std::string("\xc3\xa9")})
        EXPECT_NE(fault_of_request(with_id(id)).find("containerID "), std::string::npos) << id;
    EXPECT_EQ(fault_of_request(with_id(std::string(128, 'a'))), "accepted");
    for (const auto* name : {"", ".", "..", "lo", "a/b", "a:b", "a b", "sixteen-letters-"})
        EXPECT_NE(fault_of_request(R"({"containerID": "a", "ifname": ")" + std::string(name) + "\"}").find("ifname "),
                  std::string::npos)
            << name;
}

TEST(cni_request, names_the_field_at_fault) {
    const auto with_port = [](const std::string& port) {
        return fault_of_request(R"({"containerID": "a", "ifname": "eth0", "runtimeConfig": {"portMappings": [)" + port + "]}}");
    };
    EXPECT_EQ(with_port(R"({"hostPort": 65536, "containerPort": 1})"),
              "runtimeConfig.portMappings[0].hostPort 65536 is not a port (0-65535)");
    EXPECT_EQ(with_port(R"({"hostPort": -1, "containerPort": 1})"),
              "runtimeConfig.portMappings[0].hostPort -1 is not a port (0-65535)");
    EXPECT_EQ(with_port(R"({"hostPort": 80})"), "runtimeConfig.portMappings[0].containerPort is missing or 0");
    EXPECT_EQ(with_port(R"({"hostPort": "80"})"), "runtimeConfig.portMappings[0].hostPort is not a number");
    EXPECT_EQ(with_port(R"({"hostPort": 80, "containerPort": 80, "protocol": "icmp"})"),
              "runtimeConfig.portMappings[0].protocol \"icmp\" is none of tcp, udp, sctp");
    EXPECT_EQ(with_port(R"({"hostPort": 80, "containerPort": 80, "hostIP": "me"})"),
              "runtimeConfig.portMappings[0].hostIP \"me\" is not an IP address");
    EXPECT_EQ(with_port("7"), "runtimeConfig.portMappings[0] is not an object");
    EXPECT_NE(fault_of_request("{").find("CNI request"), std::string::npos);
    EXPECT_EQ(fault_of_request("[]"), "CNI request is not a JSON object");
    EXPECT_EQ(parse_request("[]").error().detail, R"({"cniCode":"6"})");
}

TEST(cni_gc, lists_attachments_and_takes_no_missing_list_for_an_empty_one) {
    const auto valid = parse_valid_attachments(R"({"cni.dev/valid-attachments": [{"containerID": "a", "ifname": "eth0"},
        {"containerID": "a", "ifname": "eth1"}]})");
    ASSERT_TRUE(valid);
    EXPECT_EQ(*valid, (std::set<attachment>{{"a", "eth0"}, {"a", "eth1"}}));
    EXPECT_TRUE(parse_valid_attachments(R"({"cni.dev/valid-attachments": []})")->empty());
    EXPECT_FALSE(parse_valid_attachments("{}"));
    EXPECT_FALSE(parse_valid_attachments(R"({"cni.dev/valid-attachments": [{"containerID": "a"}]})"));
}

TEST(cni_result, has_the_form_of_spec_1_1_0) {
    const auto config = *parse_settings(R"({"subnet6": "fd00::/64"})");
    const owner who{"main", "net"};
    const lease l{.container_id = "a",
                  .ifname = "eth0",
                  .addresses = {*netlink::ip_address::parse("10.88.0.7"), *netlink::ip_address::parse("fd00::7")},
                  .sandbox = "/run/netns/x"};
    const bridge host(config, who);
    const auto text = result_of({.held = l, .links = wire_for(l, config, who), .mtu = 1500}, host);
    const auto r = *base::parse_json(text, "result");
    EXPECT_EQ(r.at("cniVersion").as_string(), "1.1.0");
    ASSERT_EQ(r.at("interfaces").as_array().size(), 3u);
    EXPECT_EQ(r.at("interfaces").at(0).at("name").as_string(), "gt-main");
    EXPECT_EQ(r.at("interfaces").at(0).at("mac").as_string(), "0a:58:0a:58:00:01");
    EXPECT_EQ(r.at("interfaces").at(1).as_object().if_contains("sandbox"), nullptr);
    EXPECT_EQ(r.at("interfaces").at(2).at("name").as_string(), "eth0");
    EXPECT_EQ(r.at("interfaces").at(2).at("sandbox").as_string(), "/run/netns/x");
    EXPECT_EQ(r.at("interfaces").at(2).at("mtu").as_int64(), 1500);
    ASSERT_EQ(r.at("ips").as_array().size(), 2u);
    EXPECT_EQ(r.at("ips").at(0).at("address").as_string(), "10.88.0.7/32");
    EXPECT_EQ(r.at("ips").at(0).at("gateway").as_string(), "10.88.0.1");
    EXPECT_EQ(r.at("ips").at(1).at("address").as_string(), "fd00::7/128");
    EXPECT_EQ(r.at("ips").at(1).at("interface").as_int64(), 2);
    EXPECT_EQ(r.at("routes").at(1).at("dst").as_string(), "::/0");
    EXPECT_TRUE(r.at("dns").is_object());
}

TEST(cni_error, keeps_the_first_code) {
    const auto inner = cni_error(code::exists, cni_code::port_taken, "x");
    EXPECT_EQ(with_cni(inner, cni_code::io_failure).detail, R"({"cniCode":"101"})");
    EXPECT_EQ(with_cni({.message = "y"}, cni_code::io_failure).detail, R"({"cniCode":"5"})");
}

} // namespace
} // namespace gantry::cni_bridge
