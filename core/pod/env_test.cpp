#include "core/pod/env.hpp"

#include <map>

#include "core/pod/pod_fixture.hpp"

namespace gantry::core {
namespace {

using testing::pod_of;

std::string expanded(std::string_view text) {
    static const std::string a = "a";
    return expand(text, [](std::string_view name) { return name == "A" ? &a : nullptr; });
}

TEST(expansion, follows_the_facts_of_a_real_node) {
    for (const auto& [text, want] : std::initializer_list<std::pair<const char*, const char*>>{
             {"$$(A)", "$(A)"},   {"$$$(A)", "$a"},    {"$$$$(A)", "$$(A)"}, {"$A ${A}", "$A ${A}"}, {"$$", "$"},
             {"x$", "x$"},        {"$$A", "$A"},       {"$(A", "$(A"},       {"$()", "$()"},         {"$(A B)", "$(A B)"},
             {"$(A))", "a)"},     {"$((A))", "$((A))"}, {"$(A)$(A", "a$(A"},  {"$( A )", "$( A )"},   {"x$(A)y", "xay"},
             {"$(NOPE)", "$(NOPE)"}})
        EXPECT_EQ(expanded(text), want) << text;
}

std::map<std::string, std::string> env_of(const model::pod& pod, const env_facts& facts = {}) {
    auto env = make_env(pod, pod.spec.containers[0], facts);
    EXPECT_TRUE(env);
    return env ? std::map<std::string, std::string>(env->begin(), env->end()) : std::map<std::string, std::string>{};
}

TEST(environment, sees_only_what_was_defined_before) {
    const auto pod = pod_of(R"j({"containers": [{"name": "c", "image": "i:1", "env": [
        {"name": "Z", "value": "$(A)"}, {"name": "A", "value": "first"}, {"name": "B", "value": "$(A)"},
        {"name": "A", "value": "second"}, {"name": "C", "value": "$(A)"}, {"name": "A", "value": "$(A)-third"}]}]})j");
    EXPECT_EQ(env_of(pod), (std::map<std::string, std::string>{
                               {"Z", "$(A)"}, {"A", "second-third"}, {"B", "first"}, {"C", "second"}}));
}

TEST(environment, reads_fields_of_pod_and_status) {
    auto pod = pod_of(R"j({"containers": [{"name": "c", "image": "i:1", "env": [
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}},
        {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app.io/x']"}}},
        {"name": "E", "value": "$(A):80"},
        {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "G", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['none']"}}}]}]})j");
    pod.metadata.labels["app.io/x"] = "web";
    const env_facts facts{.pod_ips = {"10.0.0.2", "fd00::2"}, .host_ips = {"192.168.1.1"}, .node_name = "edge-1"};
    EXPECT_EQ(env_of(pod, facts),
              (std::map<std::string, std::string>{{"A", "10.0.0.2"},
                                                  {"B", "10.0.0.2,fd00::2"},
                                                  {"C", "192.168.1.1"},
                                                  {"D", "web"},
                                                  {"E", "10.0.0.2:80"},
                                                  {"F", "edge-1"},
                                                  {"G", ""}}));
}

TEST(environment, rounds_resources_up_by_their_divisor) {
    const auto pod = pod_of(R"({"containers": [{"name": "c", "image": "i:1",
        "resources": {"requests": {"cpu": "60m", "memory": "33Mi", "ephemeral-storage": "10Mi"},
                      "limits": {"cpu": "1500m", "memory": "65Mi", "ephemeral-storage": "20Mi"}},
        "env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
                {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
                {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
                {"name": "G", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1M"}}},
                {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.ephemeral-storage", "divisor": "1Ki"}}},
                {"name": "O", "valueFrom": {"resourceFieldRef": {"containerName": "o", "resource": "limits.memory"}}},
                {"name": "N", "valueFrom": {"resourceFieldRef": {"containerName": "o", "resource": "limits.cpu"}}}]},
        {"name": "o", "image": "i:1", "resources": {"limits": {"memory": "40Mi"}}}]})");
    env_facts facts;
    facts.allocatable["cpu"] = model::quantity::of_milli(2000);
    EXPECT_EQ(env_of(pod, facts), (std::map<std::string, std::string>{{"A", "2"},
                                                                      {"B", "1500"},
                                                                      {"C", "1"},
                                                                      {"E", "68157440"},
                                                                      {"G", "35"},
                                                                      {"X", "20480"},
                                                                      {"O", "41943040"},
                                                                      {"N", "2"}}));
}

TEST(environment, expands_command_and_arguments) {
    EXPECT_EQ(expand_all({"echo", "$(A)", "$(NOPE)", "$$(A)", "x$(A)y", "$A", "$(B)"}, {{"A", "va"}, {"B", "va2"}}),
              (std::vector<std::string>{"echo", "va", "$(NOPE)", "$(A)", "xvay", "$A", "va2"}));
}

} // namespace
} // namespace gantry::core
