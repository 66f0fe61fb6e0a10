#include "core/config/parse.hpp"

#include <gtest/gtest.h>

#include "core/config/names.hpp"

namespace gantry::core {
namespace {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;

constexpr std::string_view head = "apiVersion: gantry.dev/v1\nkind: NodeConfig\n"; // two lines

lines faults_of(std::string_view body) {
    return parse_node_config(std::string(head) + std::string(body), "node.yaml", "host").faults.texts();
}

TEST(node_config, reads_every_key) {
    auto parsed = parse_node_config(R"(apiVersion: gantry.dev/v1
kind: NodeConfig
node: {name: edge-1.example, instance: a, stateDir: /s, runDir: /r, podLogsDir: /l, logFormat: json, logLevel: debug}
plugins:
  - {name: net, use: cni-bridge, config: {subnet: 10.88.0.0/16}}
  - name: acme
    use: com.acme.gpu
    path: /opt/acme.so
    sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    isolation: inproc
    limits: {maxConcurrency: 4, laneStall: 2s, grace: 500ms}
bind:
  runtime: {default: native, handlers: {kata: ctd}}
  network: net
  podSources: [files, http]
  capabilities: {com.acme.gpu/1: acme}
)",
                                    "node.yaml", "host");
    EXPECT_EQ(parsed.faults.texts(), lines{});
    const auto& node = parsed.config.node;
    EXPECT_EQ(node.name, "edge-1.example");
    EXPECT_EQ(node.state_root(), "/s/a");
    EXPECT_EQ(node.run_root(), "/r/a");
    EXPECT_EQ(node.socket, "/r/a/gantry.sock");
    EXPECT_EQ(node.log_format, log_format::json);
    EXPECT_EQ(node.log_level, log_level::debug);
    ASSERT_EQ(parsed.config.plugins.size(), 2u);
    EXPECT_EQ(parsed.config.plugins[0].config.at("subnet").as_string(), "10.88.0.0/16");
    const auto& acme = parsed.config.plugins[1];
    EXPECT_EQ(acme.path, "/opt/acme.so");
    EXPECT_EQ(acme.limits.max_concurrency, 4);
    EXPECT_EQ(acme.limits.lane_stall, 2s);
    EXPECT_EQ(acme.limits.grace, 500ms);
    const auto& bind = parsed.config.bind;
    EXPECT_EQ(bind.runtime_default, "native");
    EXPECT_EQ(bind.runtime_handlers.at("kata"), "ctd");
    EXPECT_EQ(bind.instances.at("network"), lines{"net"});
    EXPECT_EQ(bind.instances.at("podSources"), (lines{"files", "http"}));
    EXPECT_EQ(bind.capabilities.at("com.acme.gpu/1"), "acme");
}

TEST(node_config, has_defaults) {
    auto parsed = parse_node_config(head, "node.yaml", "Host-1.Example");
    EXPECT_EQ(parsed.faults.texts(), lines{});
    EXPECT_EQ(parsed.config.node.name, "host-1.example");
    EXPECT_EQ(parsed.config.node.instance, "main");
    EXPECT_EQ(parsed.config.node.socket, "/run/gantry/gantry.sock");
}

TEST(node_config, reports_all_faults_with_line_and_key) {
    EXPECT_EQ(faults_of("node:\n  name: edge\n  instance: Main_1\n  stateDri: /x\n  logFormat: jsn\nplugins:\n  - {name: a}\n"
                        "  - {name: a, use: b, path: lib/x.so}\n"),
              (lines{
                  "node.yaml:5: node.instance: value \"Main_1\", allowed [a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?: at most 32 of a-z, "
                  "0-9 and -, no - at either end",
                  "node.yaml:6: node.stateDri: unknown key, allowed name, instance, stateDir, runDir, socket, podLogsDir, "
                  "logFormat, logLevel (did you mean \"stateDir\"?)",
                  "node.yaml:7: node.logFormat: value \"jsn\", allowed text, json (did you mean \"json\"?)",
                  "node.yaml:9: plugins[0].use: missing, name the plugin to load, for example cni-bridge",
                  "node.yaml:10: plugins[1].path: value \"lib/x.so\", allowed an absolute path",
                  "node.yaml:10: plugins[1].name: value \"a\" is taken by the plugin of line 9, give each instance a name of its "
                  "own",
              }));
}

TEST(node_config, refuses_wrong_types) {
    EXPECT_EQ(faults_of("plugins: {}\nbind: [x]\nnode: 5\n"),
              (lines{"node.yaml:3: plugins: value {}, allowed a list", "node.yaml:4: bind: value [\"x\"], allowed a map of keys",
                     "node.yaml:5: node: value 5, allowed a map of keys"}));
    EXPECT_EQ(faults_of("plugins:\n- {name: x, use: z, config: text, limits: {laneStall: 10, maxConcurrency: 0}}\n"),
              (lines{"node.yaml:4: plugins[0].config: value \"text\", allowed a map of keys",
                     "node.yaml:4: plugins[0].limits.maxConcurrency: value 0, allowed an integer from 1 to 4096",
                     "node.yaml:4: plugins[0].limits.laneStall: value 10, allowed a duration from 100ms to 10m such as "
                     "\"100ms\""}));
}

TEST(node_config, refuses_what_does_not_exist_yet) {
    EXPECT_EQ(faults_of("plugins:\n- {name: x, use: z, isolation: process}\nkubeletConfig: /etc/k\n"),
              (lines{"node.yaml:4: plugins[0].isolation: value \"process\", allowed inproc: plugins in a process of their own do "
                     "not exist yet, remove the key",
                     "node.yaml:5: kubeletConfig: unknown key, allowed apiVersion, kind, node, plugins, bind"}));
}

TEST(node_config, refuses_other_documents) {
    EXPECT_EQ(parse_node_config("kind: Pod\n", "p.yaml", "h").faults.texts(),
              (lines{"p.yaml:1: apiVersion is missing, write \"apiVersion: gantry.dev/v1\"",
                     "p.yaml:1: kind: value \"Pod\", allowed NodeConfig"}));
    EXPECT_EQ(parse_node_config("", "p.yaml", "h").faults.texts(),
              lines{"p.yaml:1: holds 0 documents, write exactly one NodeConfig"});
    const auto broken = parse_node_config("a: [", "p.yaml", "h").faults.texts();
    ASSERT_EQ(broken.size(), 1u);
    EXPECT_EQ(broken[0].substr(0, 7), "p.yaml:");
}

TEST(node_config, refuses_a_socket_path_that_the_kernel_would_cut) {
    const auto found = faults_of("node: {runDir: /" + std::string(120, 'r') + "}\n");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0].find("allowed at most 107 bytes: choose a shorter path"), std::string::npos) << found[0];
}

TEST(names, instance_names_fit_into_kernel_object_names) {
    for (const auto* good : {"a", "0", "edge-1", "abcdefghijklmnopqrstuvwxyz012345"}) EXPECT_TRUE(is_instance_name(good)) << good;
    for (const auto* bad : {"", "-a", "a-", "A", "a_b", "a.b", "abcdefghijklmnopqrstuvwxyz0123456"})
        EXPECT_FALSE(is_instance_name(bad)) << bad;
}

TEST(names, node_names_are_dns_subdomains) {
    for (const auto* good : {"a", "edge-1.example", "x--y.z"}) EXPECT_TRUE(is_node_name(good)) << good;
    for (const auto* bad : {"", ".a", "a.", "a..b", "-a", "a-.b", "a.-b", "A"}) EXPECT_FALSE(is_node_name(bad)) << bad;
}

TEST(names, durations_have_one_unit) {
    EXPECT_EQ(parse_duration("250ms"), 250ms);
    EXPECT_EQ(parse_duration("1h"), 3600s);
    for (const auto* bad : {"", "10", "s", "1.5s", "-1s", "1s2ms", "9999999999s"}) EXPECT_FALSE(parse_duration(bad)) << bad;
}

} // namespace
} // namespace gantry::core
