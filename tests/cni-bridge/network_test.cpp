// The verbs of CNI on a real host: what is made, remembered, refused, repaired and freed.
#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "base/files.hpp"
#include "plugins/cni-bridge/sysctl.hpp"
#include "tests/cni-bridge/world.hpp"

namespace gantry::cni_bridge::test {
namespace {

using testing::Test;

class verbs : public world {
protected:
    static std::vector<std::string> addresses_in(const netns& pod) {
        auto route = pod.route();
        const auto eth0 = *netlink::get_link(route, "eth0");
        const auto all = *netlink::list_addresses(route);
        std::vector<std::string> texts;
        for (const auto& one : all)
            if (eth0 && one.index == eth0->index) texts.push_back(one.network.text());
        return texts;
    }
    bool has_link(const std::string& name) const {
        auto route = host->route();
        const auto found = netlink::get_link(route, name);
        return found && *found;
    }
    std::size_t elements(const std::string& set) const {
        auto netfilter = *netlink::socket::open(NETLINK_NETFILTER);
        return netlink::nft::list_elements(netfilter, "gantry-" + instance, set)->size();
    }
};

TEST_F(verbs, add_sets_up_both_ends) {
    const auto net = make();
    const netns pod;
    const auto made = add(*net, "abc", pod);
    EXPECT_EQ(v4_of(made), "10.77.0.2");
    EXPECT_EQ(v6_of(made), "fd77::2");
    EXPECT_EQ(addresses_in(pod), (std::vector<std::string>{"10.77.0.2/32", "fd77::2/128", "fe80::858:aff:fe4d:2/64"}));
    auto inside = pod.route();
    EXPECT_TRUE((*netlink::get_link(inside, "lo"))->up);
    const auto eth0 = *netlink::get_link(inside, "eth0");
    EXPECT_TRUE(eth0->running);
    EXPECT_EQ(netlink::to_text(eth0->mac), "0a:58:0a:4d:00:02");
    EXPECT_EQ(eth0->mtu, 1500u);
    auto route = host->route();
    const auto outer = *netlink::get_link(route, made.links.host_name);
    ASSERT_TRUE(outer);
    EXPECT_EQ(outer->alias, "gantry:" + instance + "/net/abc/eth0");
    EXPECT_LE(outer->name.size(), 15u);
    EXPECT_EQ((*netlink::get_link(route, "gt-" + instance))->alias, "gantry:" + instance + "/net");
    EXPECT_TRUE(net->check({"abc", "eth0"}, pod.fd()));
}

TEST_F(verbs, pods_are_ready_to_talk_when_add_returns) {
    const auto net = make();
    const netns pod;
    const auto made = add(*net, "abc", pod);
    auto inside = pod.route();
    auto route = host->route();
    EXPECT_TRUE((*netlink::get_link(inside, "eth0"))->running);
    EXPECT_TRUE((*netlink::get_link(route, made.links.host_name))->running);
    EXPECT_TRUE((*netlink::get_link(route, "gt-" + instance))->running);
}

TEST_F(verbs, mtu_follows_the_default_route_unless_configured) {
    auto route = host->route();
    netlink::batch b;
    netlink::change_link(b, "up0", {.mtu = 1400});
    ASSERT_TRUE(route.send(b));
    const netns first, second;
    const auto net = make();
    EXPECT_EQ(add(*net, "a", first).mtu, 1400u);
    const auto changed = make(R"({"subnet": "10.77.0.0/24", "mtu": 1300})");
    EXPECT_EQ(add(*changed, "b", second).mtu, 1300u);
    auto inside = second.route();
    EXPECT_EQ((*netlink::get_link(inside, "eth0"))->mtu, 1300u);
}

TEST_F(verbs, replayed_add_returns_the_first_result) {
    const netns pod;
    attached first;
    {
        const auto net = make();
        first = add(*net, "a", pod, {tcp(8080, 80)});
        const auto again = add(*net, "a", pod, {tcp(8080, 80)});
        EXPECT_EQ(again.held.addresses, first.held.addresses);
    }
    const auto restarted = make();
    const auto after = add(*restarted, "a", pod, {tcp(8080, 80)});
    EXPECT_EQ(after.held.addresses, first.held.addresses);
    EXPECT_EQ(after.held.sandbox, first.held.sandbox);
    EXPECT_EQ(addresses_in(pod).size(), 3u);
    EXPECT_TRUE(restarted->check({"a", "eth0"}, pod.fd()));
}

TEST_F(verbs, replayed_add_completes_what_somebody_removed) {
    const auto net = make();
    const netns pod;
    add(*net, "a", pod, {tcp(8080, 80)});
    auto inside = pod.route();
    netlink::batch b;
    const auto index = (*netlink::get_link(inside, "eth0"))->index;
    netlink::delete_address(b, index, *netlink::ip_network::parse("10.77.0.2/32"), "eth0");
    ASSERT_TRUE(inside.send(b));
    const auto broken = net->check({"a", "eth0"}, pod.fd());
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().message,
              "link eth0 of the pod lacks address 10.77.0.2/32; the pod has no default route by 10.77.0.1");
    EXPECT_EQ(code_of(broken.error()), "103");
    add(*net, "a", pod, {tcp(8080, 80)});
    EXPECT_TRUE(net->check({"a", "eth0"}, pod.fd()));
}

TEST_F(verbs, add_moves_to_the_namespace_of_a_rebuilt_pod) {
    const auto net = make();
    auto first = std::make_unique<netns>();
    const auto before = add(*net, "a", *first);
    const netns second; // the first one is still there
    const auto after = add(*net, "a", second);
    EXPECT_EQ(after.held.addresses, before.held.addresses);
    EXPECT_TRUE(net->check({"a", "eth0"}, second.fd()));
    EXPECT_TRUE(addresses_in(*first).empty());
}

TEST_F(verbs, replay_with_other_host_ports_is_refused) {
    const auto net = make();
    const netns pod;
    add(*net, "a", pod, {tcp(8080, 80)});
    const auto other = net->add(request("a", pod, {tcp(8081, 80)}), no_steps);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, code::exists);
    EXPECT_NE(other.error().message.find("pod default/a (container a)"), std::string::npos);
}

TEST_F(verbs, add_refuses_a_foreign_interface_and_leaves_nothing) {
    const auto net = make();
    const netns pod, other;
    auto inside = pod.route();
    netlink::batch b;
    netlink::add_bridge(b, "eth0", {0x0a, 9}, 1500);
    ASSERT_TRUE(inside.send(b));
    const auto refused = net->add(request("a", pod), no_steps);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, code::exists);
    EXPECT_EQ(code_of(refused.error()), "102");
    EXPECT_EQ(refused.error().message, "the pod's namespace already has a link eth0 that is not ours");
    EXPECT_TRUE(leftovers(*net).empty());
    EXPECT_TRUE(*netlink::get_link(inside, "eth0"));
}

TEST_F(verbs, add_refuses_what_is_no_namespace) {
    const auto net = make();
    const base::unique_fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    auto bad = request("a", netns());
    bad.netns = null.get();
    const auto refused = net->add(bad, no_steps);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("not a network namespace"), std::string::npos) << refused.error().message;
    EXPECT_TRUE(leftovers(*net).empty());
}

TEST_F(verbs, dual_stack_works_where_new_namespaces_have_ipv6_off) {
    const auto net = make();
    const netns pod;
    pod.run([] {
        ASSERT_TRUE(set_sysctl("net/ipv6/conf/default/disable_ipv6", "1"));
        ASSERT_TRUE(set_sysctl("net/ipv6/conf/all/disable_ipv6", "1"));
    });
    add(*net, "a", pod);
    EXPECT_TRUE(net->check({"a", "eth0"}, pod.fd()));
    EXPECT_EQ(addresses_in(pod).size(), 3u);
}

TEST_F(verbs, addresses_are_not_reused_at_once) {
    const auto net = make();
    const netns pod;
    EXPECT_EQ(v4_of(add(*net, "a", pod)), "10.77.0.2");
    ASSERT_TRUE(net->del({"a", "eth0"}, no_steps));
    EXPECT_EQ(v4_of(add(*net, "b", netns())), "10.77.0.3");
}

TEST_F(verbs, requested_addresses_are_honoured_or_refused) {
    const auto net = make();
    const netns a, b, c;
    auto wanted = request("a", a);
    wanted.wanted_addresses = {*netlink::ip_address::parse("10.77.0.77")};
    const auto given = net->add(wanted, no_steps);
    ASSERT_TRUE(given);
    EXPECT_EQ(v4_of(*given), "10.77.0.77");
    EXPECT_EQ(v6_of(*given), "fd77::2");
    wanted = request("b", b);
    wanted.wanted_addresses = {*netlink::ip_address::parse("fd77::9"), *netlink::ip_address::parse("10.77.0.77")};
    const auto taken = net->add(wanted, no_steps);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().message, "the requested address 10.77.0.77 is in use");
    wanted.wanted_addresses = {*netlink::ip_address::parse("fd77::9")}; // was given back
    EXPECT_TRUE(net->add(wanted, no_steps));
    wanted = request("c", c);
    wanted.wanted_addresses = {*netlink::ip_address::parse("10.78.0.1")};
    const auto outside_range = net->add(wanted, no_steps);
    ASSERT_FALSE(outside_range);
    EXPECT_NE(outside_range.error().message.find("10.78.0.1 is outside the range 10.77.0.1-10.77.0.254"),
              std::string::npos)
        << outside_range.error().message;
}

TEST_F(verbs, exhaustion_names_the_range_and_the_counts) {
    const auto net = make(R"({"subnet": "10.77.0.0/29"})");
    const netns pods[6];
    for (int i = 0; i < 5; ++i) add(*net, "p" + std::to_string(i), pods[i]);
    const auto full = net->add(request("p5", pods[5]), no_steps);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, code::resource);
    EXPECT_EQ(code_of(full.error()), "100");
    EXPECT_EQ(
        full.error().message.find("no free address for a pod in range 10.77.0.1-10.77.0.6: 5 addresses, 5 in use"), 0u)
        << full.error().message;
    const auto status = net->status();
    ASSERT_FALSE(status);
    EXPECT_EQ(code_of(status.error()), "50");
    ASSERT_TRUE(net->del({"p3", "eth0"}, no_steps));
    EXPECT_TRUE(net->status());
    EXPECT_EQ(v4_of(add(*net, "p5", pods[5])), "10.77.0.5");
}

TEST_F(verbs, host_port_of_another_pod_is_refused_by_its_name) {
    const auto net = make();
    const netns a, b;
    add(*net, "a", a, {tcp(8080, 80)});
    for (const auto& clash : {tcp(8080, 81), tcp(8080, 81, "192.0.2.1"), tcp(8080, 81, "::")}) {
        const auto refused = net->add(request("b", b, {clash}), no_steps);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, code::exists);
        EXPECT_EQ(code_of(refused.error()), "101");
        EXPECT_NE(refused.error().message.find("is taken by pod default/a (container a)"), std::string::npos)
            << refused.error().message;
    }
    EXPECT_EQ(net->leases().size(), 1u);
    add(*net, "b", b, {udp(8080, 80)});
}

TEST_F(verbs, del_works_with_and_without_the_namespace_and_twice) {
    const auto net = make();
    const netns stays;
    add(*net, "stays", stays, {tcp(8080, 80)});
    add(*net, "gone", netns(), {tcp(8081, 80)});
    EXPECT_EQ(elements("port4"), 2u);
    for (const auto* id : {"stays", "gone", "gone", "never-was"}) ASSERT_TRUE(net->del({id, "eth0"}, no_steps)) << id;
    EXPECT_EQ(elements("port4"), 0u);
    EXPECT_EQ(elements("hairpin6"), 0u);
    EXPECT_TRUE(eventually([&] { return leftovers(*net).empty(); }));
    auto inside = stays.route();
    EXPECT_FALSE(*netlink::get_link(inside, "eth0"));
}

TEST_F(verbs, del_works_from_saved_state_of_a_process_before) {
    const netns pod;
    { add(*make(), "a", pod, {tcp(8080, 80)}); }
    const auto restarted = make();
    ASSERT_TRUE(restarted->del({"a", "eth0"}, no_steps)); // not even started
    EXPECT_TRUE(leftovers(*restarted).empty());
}

TEST_F(verbs, del_finds_the_link_though_the_state_was_lost) {
    const netns pod;
    const auto made = add(*make(), "a", pod);
    ASSERT_TRUE(base::remove_tree(state_dir + "/" + instance));
    const auto restarted = make();
    ASSERT_TRUE(restarted->start());
    ASSERT_TRUE(restarted->del({"a", "eth0"}, no_steps));
    ASSERT_TRUE(restarted->delete_doomed());
    EXPECT_FALSE(has_link(made.links.host_name));
}

TEST_F(verbs, an_add_right_after_its_del_gets_a_fresh_link) {
    const auto net = make();
    const netns pod;
    add(*net, "a", pod);
    ASSERT_TRUE(net->del({"a", "eth0"}, no_steps));
    add(*net, "a", pod);
    ASSERT_TRUE(net->delete_doomed()); // must not take the new one for the old one
    EXPECT_TRUE(net->check({"a", "eth0"}, pod.fd()));
}

TEST_F(verbs, gc_frees_what_is_not_valid_and_only_of_its_own_instance) {
    const auto net = make();
    const auto other = make(R"({"subnet": "10.78.0.0/24"})", instance + "b");
    const netns a, b, c;
    add(*net, "a", a, {tcp(8080, 80)});
    add(*net, "b", b, {tcp(8081, 80)});
    add(*other, "c", c, {tcp(8082, 80)});
    ASSERT_TRUE(net->gc({{"a", "eth0"}}));
    EXPECT_EQ(net->leases().size(), 1u);
    EXPECT_EQ(elements("port4"), 1u);
    EXPECT_TRUE(net->check({"a", "eth0"}, a.fd()));
    EXPECT_TRUE(other->check({"c", "eth0"}, c.fd()));
    ASSERT_TRUE(net->delete_doomed());
    EXPECT_TRUE(addresses_in(b).empty());
    EXPECT_TRUE(other->check({"c", "eth0"}, c.fd()));
    ASSERT_TRUE(net->gc({}));
    EXPECT_TRUE(net->leases().empty());
    EXPECT_TRUE(other->check({"c", "eth0"}, c.fd()));
}

TEST_F(verbs, gc_frees_leases_and_links_that_outlived_each_other) {
    const netns pod;
    add(*make(), "linked", pod);
    add(*make(), "leased", netns());
    ASSERT_EQ(::unlink((state_dir + "/" + instance + "/leases/linked,eth0").c_str()), 0);
    std::ofstream(state_dir + "/" + instance + "/leases/cut-short,eth0") << "{\"containerID\": \"cut";
    const auto restarted = make();
    ASSERT_TRUE(restarted->start());
    EXPECT_EQ(restarted->leases().size(), 1u);
    ASSERT_TRUE(restarted->gc({}));
    EXPECT_TRUE(eventually([&] { return leftovers(*restarted).empty(); }));
    EXPECT_TRUE(addresses_in(pod).empty());
}

TEST_F(verbs, leases_of_before_a_reboot_are_kept_until_gc) {
    { add(*make(), "old", netns(), {tcp(8080, 80)}); }
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0); // all links and tables are gone
    host.emplace(netns::current());
    const auto rebooted = make();
    ASSERT_TRUE(rebooted->start());
    EXPECT_EQ(rebooted->leases().size(), 1u);
    const netns pod;
    EXPECT_NE(v4_of(add(*rebooted, "new", pod)), "10.77.0.2");
    ASSERT_TRUE(rebooted->gc({{"new", "eth0"}}));
    EXPECT_EQ(rebooted->leases().size(), 1u);
    EXPECT_EQ(elements("port4"), 0u);
    EXPECT_TRUE(rebooted->check({"new", "eth0"}, pod.fd()));
}

TEST_F(verbs, same_subnet_of_a_second_instance_is_refused) {
    const auto first = make();
    ASSERT_TRUE(first->start());
    const auto second = make(R"({"subnet": "10.77.0.0/25"})", instance + "b");
    const netns pod;
    const auto refused = second->add(request("a", pod), no_steps);
    ASSERT_FALSE(refused);
    EXPECT_EQ(code_of(refused.error()), "7");
    EXPECT_EQ(refused.error().message,
              "subnet 10.77.0.0/25 of bridge gt-" + instance + "b overlaps with address 10.77.0.1/24 of link gt-" +
                  instance + " (gantry:" + instance + "/net); give this node's cni-bridge another subnet");
    const auto status = second->status();
    ASSERT_FALSE(status);
    EXPECT_EQ(code_of(status.error()), "50");
    EXPECT_FALSE(has_link("gt-" + instance + "b"));
    EXPECT_TRUE(first->status());
}

TEST_F(verbs, subnet_that_holds_an_address_of_the_host_is_refused) {
    const auto net = make(R"({"subnet": "192.0.2.0/25"})");
    const auto refused = net->start();
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("overlaps with address 192.0.2.1/24 of link up0"), std::string::npos);
    EXPECT_TRUE(
        make(R"({"subnet": "192.0.2.128/25"})")->start()); // within the host's network, holding none of its addresses
}

TEST_F(verbs, a_second_plugin_of_the_same_node_is_refused) {
    ASSERT_TRUE(make()->start());
    const auto refused = make(default_config, "", "other")->start();
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("exists and is not this plugin's bridge"), std::string::npos);
}

TEST_F(verbs, long_instance_names_are_cut_without_meeting) {
    const auto first = make(R"({"subnet": "10.77.0.0/24"})", "a-very-long-instance-name-1-" + instance);
    const auto second = make(R"({"subnet": "10.78.0.0/24"})", "a-very-long-instance-name-2-" + instance);
    ASSERT_TRUE(first->start());
    ASSERT_TRUE(second->start());
    EXPECT_NE(first->link().name(), second->link().name());
    EXPECT_TRUE(has_link(first->link().name()) && has_link(second->link().name()));
}

TEST_F(verbs, check_sees_a_missing_map_element_and_an_unknown_container) {
    const auto net = make();
    const netns pod;
    add(*net, "a", pod, {tcp(8080, 80)});
    nft("delete element inet gantry-" + instance + " port4 { tcp . 8080 }");
    const auto broken = net->check({"a", "eth0"}, pod.fd());
    ASSERT_FALSE(broken);
    EXPECT_NE(broken.error().message.find("map port4"), std::string::npos) << broken.error().message;
    const auto unknown = net->check({"b", "eth0"}, pod.fd());
    ASSERT_FALSE(unknown);
    EXPECT_EQ(code_of(unknown.error()), "3");
}

TEST_F(verbs, del_succeeds_after_somebody_flushed_the_ruleset) {
    const auto net = make();
    const netns a, b;
    add(*net, "a", a, {tcp(8080, 80)});
    add(*net, "b", b, {tcp(8081, 80), udp(8081, 80)});
    nft("delete element inet gantry-" + instance + " port4 { tcp . 8081 }");
    ASSERT_TRUE(net->del({"b", "eth0"}, no_steps));
    EXPECT_EQ(elements("port4"), 1u);
    EXPECT_EQ(elements("hairpin4"), 1u);
    nft("flush ruleset");
    ASSERT_TRUE(net->del({"a", "eth0"}, no_steps));
    EXPECT_TRUE(leftovers(*net).empty());
}

TEST_F(verbs, add_repairs_what_it_needs) {
    const auto net = make();
    const netns a, b;
    add(*net, "a", a, {tcp(8080, 80)});
    nft("flush ruleset");
    add(*net, "b", b, {tcp(8081, 80)});
    EXPECT_EQ(elements("port4"), 2u);
    auto route = host->route();
    netlink::batch gone;
    netlink::delete_link(gone, "gt-" + instance);
    ASSERT_TRUE(route.send(gone));
    const netns c;
    add(*net, "c", c);
    for (const auto* id : {"a", "b", "c"})
        EXPECT_TRUE(net->check({id, "eth0"}, (id[0] == 'a' ? a : id[0] == 'b' ? b : c).fd())) << id;
}

TEST_F(verbs, audit_says_what_it_repaired_and_is_quiet_when_all_is_well) {
    const auto net = make();
    const netns pod;
    add(*net, "a", pod, {tcp(8080, 80), udp(8080, 80)});
    const std::string table = "inet gantry-" + instance;
    logged.clear();
    ASSERT_TRUE(net->audit());
    EXPECT_TRUE(logged.empty());
    const std::vector<std::string> damages{"flush ruleset",
                                           "flush chain " + table + " postrouting",
                                           "insert rule " + table + " guard accept",
                                           "flush map " + table + " port6",
                                           "add element " + table + " port4 { tcp . 9999 : 10.77.0.9 . 80 }",
                                           "delete element " + table + " hairpin4 { 10.77.0.2 . 10.77.0.2 }",
                                           "add chain " + table + " foreign"};
    for (const auto& damage : damages) {
        SCOPED_TRACE(damage);
        nft(damage);
        logged.clear();
        ASSERT_TRUE(net->audit());
        EXPECT_EQ(logged.size(), 1u);
        EXPECT_TRUE(net->check({"a", "eth0"}, pod.fd()));
        logged.clear();
        ASSERT_TRUE(net->audit());
        EXPECT_TRUE(logged.empty());
        EXPECT_EQ(elements("port4"), 2u);
    }
}

TEST_F(verbs, foreign_tables_are_left_alone) {
    nft("add table inet mine\n"
        "add chain inet mine c { type filter hook forward priority 0; policy accept; }\n"
        "add rule inet mine c counter");
    const auto net = make();
    const netns pod;
    add(*net, "a", pod, {tcp(8080, 80)});
    nft("flush chain inet gantry-" + instance + " guard");
    ASSERT_TRUE(net->audit());
    ASSERT_TRUE(net->gc({}));
    auto netfilter = *netlink::socket::open(NETLINK_NETFILTER);
    EXPECT_EQ(netlink::nft::list_rules(netfilter, "mine")->size(), 1u);
}

TEST_F(verbs, listens_for_foreign_changes_of_its_table_only) {
    const auto net = make();
    ASSERT_TRUE(net->start());
    const netns pod;
    (void)net->table_was_touched();
    add(*net, "a", pod, {tcp(8080, 80)});
    EXPECT_FALSE(net->table_was_touched()); // by itself
    nft("table inet mine { }");
    EXPECT_FALSE(net->table_was_touched());
    nft("flush ruleset");
    EXPECT_TRUE(net->table_was_touched());
}

TEST_F(verbs, ipv6_forwarding_keeps_the_hosts_router_advertisements) {
    ASSERT_TRUE(set_sysctl("net/ipv6/conf/up0/accept_ra", "1"));
    ASSERT_TRUE(make()->start());
    EXPECT_EQ(*read_sysctl("net/ipv6/conf/all/forwarding"), "1");
    EXPECT_EQ(*read_sysctl("net/ipv6/conf/up0/accept_ra"), "2");
}

} // namespace
} // namespace gantry::cni_bridge::test
