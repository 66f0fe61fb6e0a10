#include "core/pod/dns.hpp"
#include "core/pod/hosts.hpp"
#include "core/pod/pod_fixture.hpp"

namespace gantry::core {
namespace {

using testing::pod_of;

constexpr const char* one = R"("containers": [{"name": "c", "image": "i:1"}]})";
constexpr const char* hosts_head = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"
                                   "::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n"
                                   "fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";

pod_hostname name_of(const model::pod& pod, const std::string& domain = "") {
    auto name = make_hostname(pod, "node-1", domain);
    EXPECT_TRUE(name);
    return name ? *name : pod_hostname{};
}

TEST(host_name, is_the_pods_name_cut_to_63) {
    const std::string long_name = "hostname-long-pod-name-" + std::string(39, 'x') + "-tail";
    const auto pod = pod_of(std::string("{") + one, long_name);
    EXPECT_EQ(name_of(pod).name, long_name.substr(0, 62));
}

TEST(host_name, takes_subdomain_override_and_fqdn) {
    auto pod = pod_of(std::string(R"({"hostname": "my-host", "subdomain": "sub", )") + one);
    EXPECT_EQ(name_of(pod).name, "my-host");
    EXPECT_EQ(name_of(pod, "cluster.local").domain, "sub.oracle.svc.cluster.local");
    pod.spec.set_hostname_as_fqdn = true;
    EXPECT_EQ(name_of(pod).name, "my-host.sub.oracle.svc.");
    pod.spec.subdomain = std::string(60, 's');
    EXPECT_FALSE(make_hostname(pod, "node-1", "cluster.local"));
    pod.spec.hostname_override = "over.ride.example";
    EXPECT_EQ(name_of(pod).host, "over.ride.example");
    EXPECT_EQ(name_of(pod).domain, "");
}

TEST(hosts_file, is_that_of_a_real_kubelet) {
    auto pod = pod_of(std::string(R"({"hostAliases": [{"ip": "10.1.2.3", "hostnames": ["a.example", "b.example"]},
                                                      {"ip": "10.1.2.4", "hostnames": ["c.example"]}], )") + one,
                      "host-aliases");
    EXPECT_EQ(make_hosts(pod.spec, name_of(pod), {"10.88.0.9"}, ""),
              hosts_head + std::string("10.88.0.9\thost-aliases\n\n# Entries added by HostAliases.\n"
                                       "10.1.2.3\ta.example\tb.example\n10.1.2.4\tc.example\n"));
    pod = pod_of(std::string(R"({"subdomain": "sub", )") + one, "h");
    EXPECT_EQ(make_hosts(pod.spec, name_of(pod), {"10.88.0.9"}, ""),
              hosts_head + std::string("10.88.0.9\th.sub.oracle.svc.\th\n"));
}

TEST(hosts_file, is_the_nodes_own_on_the_host_network) {
    const auto pod = pod_of(std::string(R"({"hostNetwork": true, )") + one);
    EXPECT_EQ(name_of(pod).name, "node-1");
    EXPECT_EQ(make_hosts(pod.spec, name_of(pod), {}, "1.2.3.4 x\n"),
              "# Kubernetes-managed hosts file (host network).\n1.2.3.4 x\n");
}

TEST(resolv_conf, is_read_as_resolvers_do) {
    const auto c = parse_resolv_conf("# c\n; d\nsearch old\nnameserver 1.1.1.1\nnameserver\t2.2.2.2 x\nnameserver 1.1.1.1\n"
                                     "search a.example. . b.example a.example\noptions ndots:2 rotate\r\n");
    EXPECT_EQ(c, (dns_config{{"1.1.1.1", "2.2.2.2"}, {"a.example", "b.example"}, {"ndots:2", "rotate"}}));
    EXPECT_TRUE(only_loopback(parse_resolv_conf("nameserver 127.0.0.53\n")));
    EXPECT_FALSE(only_loopback(parse_resolv_conf("nameserver 127.0.0.53\nnameserver 9.9.9.9\n")));
    EXPECT_FALSE(only_loopback({}));
}

const dns_facts node{.node = {{"8.8.8.8"}, {"corp.example"}, {"rotate"}},
                     .cluster_servers = {"10.96.0.10"},
                     .cluster_domain = "cluster.local"};

TEST(dns_policy, cluster_first) {
    const auto dns = make_dns(pod_of(std::string("{") + one), node);
    EXPECT_EQ(dns.config, (dns_config{{"10.96.0.10"},
                                      {"oracle.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"},
                                      {"ndots:5"}}));
    EXPECT_FALSE(dns.missing_cluster_dns);
}

TEST(dns_policy, falls_back_without_cluster_dns) {
    auto facts = node;
    facts.cluster_servers.clear();
    const auto dns = make_dns(pod_of(std::string("{") + one), facts);
    EXPECT_TRUE(dns.missing_cluster_dns);
    EXPECT_EQ(dns.config, node.node);
}

TEST(dns_policy, default_with_additions) {
    const auto dns = make_dns(pod_of(std::string(R"({"dnsPolicy": "Default", "dnsConfig": {"nameservers": ["9.9.9.9"],
        "searches": ["x.example"], "options": [{"name": "ndots", "value": "4"}, {"name": "rotate"}]}, )") + one), node);
    EXPECT_EQ(dns.config, (dns_config{{"8.8.8.8", "9.9.9.9"}, {"corp.example", "x.example"}, {"rotate", "ndots:4"}}));
}

TEST(dns_policy, none_and_host_network) {
    EXPECT_EQ(make_dns(pod_of(std::string(R"({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.2.3.4"]}, )") + one), node)
                  .config,
              (dns_config{{"1.2.3.4"}, {}, {}}));
    EXPECT_EQ(make_dns(pod_of(std::string(R"({"hostNetwork": true, )") + one), node).config, node.node);
    EXPECT_EQ(make_dns(pod_of(std::string(R"({"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet", )") + one), node)
                  .config.servers,
              (std::vector<std::string>{"10.96.0.10"}));
}

TEST(dns_policy, cuts_what_resolvers_cannot_use_and_says_so) {
    dns_facts many;
    many.node.servers = {"1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"};
    for (int i = 0; i < 40; ++i) many.node.searches.push_back("s" + std::to_string(i) + ".example");
    const auto dns = make_dns(pod_of(std::string(R"({"dnsPolicy": "Default", )") + one), many);
    EXPECT_EQ(dns.config.servers.size(), 3u);
    EXPECT_EQ(dns.config.searches.size(), 32u);
    EXPECT_TRUE(dns.cut.starts_with("Nameserver limits were exceeded, some nameservers have been omitted, the applied "
                                    "nameserver line is: 1.1.1.1 2.2.2.2 3.3.3.3"));
    EXPECT_NE(dns.cut.find("Search Line limits were exceeded"), std::string::npos);
}

} // namespace
} // namespace gantry::core
