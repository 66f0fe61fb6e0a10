#include "core/config/bind.hpp"

#include <gtest/gtest.h>

namespace gantry::core {
namespace {

using lines = std::vector<std::string>;

constexpr auto runtime_id = "gantry.runtime/1-draft";
constexpr auto network_id = "gantry.network/1-draft";

struct outcome {
    bindings bound;
    lines faults;
};

outcome resolve(const bind_settings& bind, const std::vector<plugin_offer>& offers) {
    fault_list faults("n.yaml", {{"bind", 9}, {"plugins[1]", 5}});
    outcome out;
    out.bound = resolve_bindings(bind, offers, faults);
    out.faults = faults.texts();
    return out;
}

const plugin_offer native{.name = "native", .capabilities = {runtime_id}, .peers = {network_id}};
const plugin_offer ctd{.name = "ctd", .capabilities = {runtime_id}, .owns_network = true};
const plugin_offer net{.name = "net", .capabilities = {network_id}};
const plugin_offer calico{.name = "calico", .capabilities = {network_id}};

TEST(bind, a_single_candidate_binds_itself) {
    const auto out = resolve({}, {native, net});
    EXPECT_EQ(out.faults, lines{});
    EXPECT_EQ(out.bound.instances.at(network_id), lines{"net"});
    EXPECT_EQ(out.bound.handlers.at(""), "native");
    EXPECT_EQ(out.bound.warnings, lines{});
}

TEST(bind, several_candidates_need_a_choice) {
    EXPECT_EQ(resolve({}, {native, net, calico}).faults,
              lines{"n.yaml:9: bind.network: missing, 2 plugins offer gantry.network/1-draft (net, calico): choose one, for example "
                    "\"bind: {network: net}\""});
    EXPECT_EQ(resolve({}, {native, ctd, net}).faults,
              lines{"n.yaml:9: bind.runtime.default: missing, 2 plugins offer gantry.runtime/1-draft (native, ctd): choose one, for "
                    "example \"bind: {runtime: {default: native}}\""});
    const auto chosen = resolve({.instances = {{"network", {"calico"}}}}, {native, net, calico});
    EXPECT_EQ(chosen.faults, lines{});
    EXPECT_EQ(chosen.bound.instances.at(network_id), lines{"calico"});
    EXPECT_EQ(chosen.bound.warnings,
              lines{"plugin \"net\" is loaded and nothing uses it: bind one of gantry.network/1-draft to it, or remove it"});
}

TEST(bind, names_must_be_instances_that_offer_it) {
    EXPECT_EQ(resolve({.instances = {{"network", {"nte"}}}}, {native, net}).faults,
              (lines{"n.yaml:9: bind.network: value \"nte\" is not the name of a plugin, allowed net (did you mean \"net\"?)"}));
    EXPECT_EQ(resolve({.instances = {{"network", {"native"}}}}, {native, net}).faults,
              lines{"n.yaml:9: bind.network: value \"native\" does not offer gantry.network/1-draft, allowed net"});
    EXPECT_EQ(resolve({.instances = {{"proxy", {"net"}}}}, {native, net}).faults,
              lines{"n.yaml:9: bind.proxy: value \"net\" does not offer gantry.proxy/1-draft, no plugin of this node offers it"});
}

TEST(bind, says_so_when_only_the_revision_differs) {
    const plugin_offer newer{.name = "newer", .capabilities = {"gantry.network/7"}};
    EXPECT_EQ(resolve({.instances = {{"network", {"newer"}}}}, {ctd, newer}).faults[0],
              "n.yaml:9: bind.network: value \"newer\" offers gantry.network/7, this gantry speaks gantry.network/1-draft: install a "
              "matching version of the plugin");
    EXPECT_EQ(resolve({}, {net, {.name = "x", .peers = {"gantry.network/9"}}}).faults,
              lines{"n.yaml:5: plugins[1]: \"x\" requires gantry.network/9 and no other plugin offers it, \"net\" offers "
                    "gantry.network/1-draft instead: add one under plugins"});
}

TEST(bind, refuses_a_network_that_no_runtime_would_use) {
    const auto out = resolve({.instances = {{"network", {"net"}}}}, {ctd, net});
    EXPECT_EQ(out.faults, lines{"n.yaml:9: bind.network: value \"net\", allowed only beside a runtime that leaves the network to the "
                                "node, ctd owns the network of its pods: remove bind.network"});
    const bind_settings both{.runtime_default = "native", .runtime_handlers = {{"kata", "ctd"}}, .instances = {{"network", {"net"}}}};
    EXPECT_EQ(resolve(both, {native, ctd, net}).faults, lines{});
}

TEST(bind, handlers_choose_the_runtime) {
    const auto out = resolve({.runtime_default = "native", .runtime_handlers = {{"kata", "ctd"}}}, {native, ctd, net});
    EXPECT_EQ(out.faults, lines{});
    EXPECT_EQ(out.bound.handlers, (std::map<std::string, std::string>{{"", "native"}, {"kata", "ctd"}}));
    EXPECT_EQ(out.bound.instances.at(runtime_id), (lines{"native", "ctd"}));
}

TEST(bind, requirements_must_be_met_by_another_plugin) {
    EXPECT_EQ(resolve({}, {net, {.name = "svc", .peers = {"com.acme.dns/2"}}}).faults,
              lines{"n.yaml:5: plugins[1]: \"svc\" requires com.acme.dns/2 and no other plugin offers it: add one under plugins"});
    const auto met = resolve({}, {{.name = "svc", .peers = {"com.acme.dns/2"}}, {.name = "dns", .capabilities = {"com.acme.dns/2"}}});
    EXPECT_EQ(met.faults, lines{});
    EXPECT_EQ(met.bound.instances.at("com.acme.dns/2"), lines{"dns"});
}

TEST(bind, vendor_capabilities_are_bound_by_id) {
    const std::vector<plugin_offer> offers{{.name = "svc", .peers = {"com.acme.dns/2"}},
                                           {.name = "a", .capabilities = {"com.acme.dns/2"}},
                                           {.name = "b", .capabilities = {"com.acme.dns/2"}}};
    EXPECT_EQ(resolve({}, offers).faults,
              lines{"n.yaml:9: bind.capabilities.com.acme.dns/2: missing, 2 plugins offer com.acme.dns/2 (a, b): choose one, for example "
                    "\"bind: {capabilities: {com.acme.dns/2: a}}\""});
    EXPECT_EQ(resolve({.capabilities = {{"com.acme.dns/2", "b"}}}, offers).bound.instances.at("com.acme.dns/2"), lines{"b"});
    EXPECT_EQ(resolve({.capabilities = {{network_id, "net"}}}, {native, net}).faults,
              lines{"n.yaml:9: bind.capabilities.gantry.network/1-draft: allowed capabilities of vendors: bind this one by the key "
                    "bind.network"});
}

TEST(bind, pods_need_a_runtime) {
    EXPECT_EQ(resolve({}, {{.name = "files", .capabilities = {"gantry.pod-source/1-draft"}}}).faults,
              lines{"n.yaml:1: plugins: no plugin offers gantry.runtime/1-draft, which the pods of files need: add one, for example "
                    "{name: native, use: cri-native}"});
}

TEST(bind, lists_bind_all_candidates_unless_they_are_named) {
    const std::vector<plugin_offer> offers{native, net, {.name = "files", .capabilities = {"gantry.pod-source/1-draft"}},
                                           {.name = "http", .capabilities = {"gantry.pod-source/1-draft"}}};
    EXPECT_EQ(resolve({}, offers).bound.instances.at("gantry.pod-source/1-draft"), (lines{"files", "http"}));
    EXPECT_EQ(resolve({.instances = {{"podSources", {"http"}}}}, offers).bound.instances.at("gantry.pod-source/1-draft"),
              lines{"http"});
}

} // namespace
} // namespace gantry::core
