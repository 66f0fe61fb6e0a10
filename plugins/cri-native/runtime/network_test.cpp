#include "plugins/cri-native/runtime/network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cri_native {
namespace {

TEST(network_request, carries_the_pods_name_and_published_ports) {
    runtime::v1::PodSandboxConfig config;
    config.mutable_metadata()->set_namespace_("default");
    config.mutable_metadata()->set_name("web");
    config.mutable_metadata()->set_uid("u1");
    auto* published = config.add_port_mappings();
    published->set_protocol(runtime::v1::UDP);
    published->set_container_port(53);
    published->set_host_port(5353);
    published->set_host_ip("127.0.0.1");
    config.add_port_mappings()->set_container_port(80); // not published
    EXPECT_EQ(
        network_request("s1", config),
        R"({"containerID":"s1","ifname":"eth0","args":{"K8S_POD_NAMESPACE":"default","K8S_POD_NAME":"web",)"
        R"("K8S_POD_UID":"u1","K8S_POD_INFRA_CONTAINER_ID":"s1"},"runtimeConfig":{"portMappings":[{"hostPort":5353,)"
        R"("containerPort":53,"protocol":"udp","hostIP":"127.0.0.1"}]}})");
}

TEST(addresses_of, takes_those_of_the_sandbox) {
    const auto ips = addresses_of(R"({"cniVersion":"1.1.0","interfaces":[{"name":"br0"},{"name":"eth0","sandbox":"/n"}],
        "ips":[{"address":"10.0.0.5/24","interface":1},{"address":"10.0.0.1/24","interface":0},{"address":"fd00::5/64"}]})");
    ASSERT_TRUE(ips);
    EXPECT_THAT(*ips, testing::ElementsAre("10.0.0.5", "fd00::5"));
}

TEST(addresses_of, fails_without_one) {
    EXPECT_FALSE(addresses_of("{}"));
    EXPECT_FALSE(addresses_of(R"({"ips":[]})"));
    EXPECT_FALSE(addresses_of("not json"));
    EXPECT_FALSE(addresses_of(R"({"ips":[{"address":5}]})"));
}

} // namespace
} // namespace gantry::cri_native
