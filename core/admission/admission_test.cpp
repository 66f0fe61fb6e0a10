#include "core/admission/admission.hpp"

#include "core/admission/node_affinity.hpp"
#include "core/pod/pod_fixture.hpp"

namespace gantry::core {
namespace {

using testing::pod_of;

admission_facts facts() {
    admission_facts f;
    f.allocatable = node_amounts{.cpu_milli = 2000, .memory = 1ll << 30, .ephemeral_storage = 1ll << 30, .pods = 3};
    f.node_name = "edge-1";
    f.labels = {{"kubernetes.io/os", "linux"}, {"zone", "a"}, {"cores", "8"}};
    return f;
}

std::string container(const std::string& more) { return R"({"name": "c", "image": "i:1")" + more + "}"; }
model::pod pod(const std::string& spec, const std::string& more = "") {
    return pod_of("{" + spec + (spec.empty() ? "" : ", ") + R"("containers": [)" + container(more) + "]}");
}
std::string verdict(const model::pod& p, const std::vector<admitted_pod>& others = {}, const admission_facts& f = facts()) {
    const auto no = admit(p, others, f);
    return no ? no->reason + ": " + no->message : "";
}

TEST(admission, takes_a_plain_pod) { EXPECT_EQ(verdict(pod("")), ""); }

TEST(admission, refuses_sysctls_in_the_kubelets_words) {
    const auto with = [](const char* name, const char* more = "") {
        return pod(std::string(more) + R"("securityContext": {"sysctls": [{"name": ")" + name + R"(", "value": "1"}]})");
    };
    EXPECT_EQ(verdict(with("kernel.msgmax")), "SysctlForbidden: forbidden sysctl: \"kernel.msgmax\" not allowlisted");
    EXPECT_EQ(verdict(with("net/ipv4/tcp_syncookies")), "");
    EXPECT_EQ(verdict(with("net.ipv4.tcp_syncookies", R"("hostNetwork": true, )")),
              "SysctlForbidden: forbidden sysctl: \"net.ipv4.tcp_syncookies\" not allowed with host net enabled");
    auto f = facts();
    f.allowed_unsafe_sysctls = {"kernel.msg*"};
    EXPECT_EQ(verdict(with("kernel.msgmax"), {}, f), "");
    EXPECT_EQ(verdict(with("kernel.msgmax", R"("hostIPC": true, )"), {}, f),
              "SysctlForbidden: forbidden sysctl: \"kernel.msgmax\" not allowed with host ipc enabled");
}

TEST(admission, refuses_what_does_not_fit) {
    EXPECT_EQ(verdict(pod("", R"(, "resources": {"requests": {"memory": "9Ti"}})")),
              "OutOfmemory: Node didn't have enough resource: memory, requested: 9895604649984, used: 0, capacity: "
              "1073741824");
    const auto half = pod("", R"(, "resources": {"requests": {"cpu": "1500m"}})");
    EXPECT_EQ(verdict(half, {{&half, false}}),
              "OutOfcpu: Node didn't have enough resource: cpu, requested: 1500, used: 1500, capacity: 2000");
    const auto plain = pod("");
    EXPECT_EQ(verdict(plain, {{&plain, false}, {&plain, false}, {&plain, false}}),
              "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3");
    EXPECT_EQ(verdict(pod("", R"(, "resources": {"limits": {"example.com/gadget": "1"}})")), "") << "unknown ones are ignored";
    EXPECT_TRUE(verdict(pod("", R"(, "resources": {"limits": {"hugepages-2Mi": "2Mi", "memory": "1Mi"}})")).starts_with("OutOfhugepages-2Mi"));
}

TEST(admission, waits_when_only_ending_pods_are_in_the_way) {
    const auto half = pod("", R"(, "resources": {"requests": {"cpu": "1500m"}})");
    const auto port = pod("", R"(, "ports": [{"containerPort": 80, "hostPort": 80}])");
    EXPECT_TRUE(admit(half, {{&half, true}}, facts())->later);
    EXPECT_FALSE(admit(half, {{&half, false}}, facts())->later);
    EXPECT_TRUE(admit(port, {{&port, true}}, facts())->later);
    EXPECT_FALSE(admit(port, {{&port, false}}, facts())->later);
}

TEST(admission, knows_which_host_ports_collide) {
    const auto with = [](const char* port) { return pod("", std::string(R"(, "ports": [)") + port + "]"); };
    const auto taken = with(R"({"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1"})");
    EXPECT_TRUE(verdict(with(R"({"containerPort": 81, "hostPort": 8080})"), {{&taken, false}}).starts_with("NodePorts: Predicate"));
    EXPECT_EQ(verdict(with(R"({"containerPort": 81, "hostPort": 8080, "hostIP": "10.0.0.1"})"), {{&taken, false}}), "");
    EXPECT_EQ(verdict(with(R"({"containerPort": 81, "hostPort": 8080, "protocol": "UDP"})"), {{&taken, false}}), "");
}

TEST(admission, checks_the_node_once_more) {
    const std::string mismatch = "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
    EXPECT_EQ(verdict(pod(R"("nodeSelector": {"zone": "b"})")), mismatch);
    EXPECT_EQ(verdict(pod(R"("nodeSelector": {"zone": "a"})")), "");
    EXPECT_TRUE(verdict(pod(R"("nodeName": "other")")).starts_with("NodeName: Predicate NodeName failed"));
    EXPECT_TRUE(verdict(pod(R"("os": {"name": "windows"})")).starts_with("PodOSNotSupported"));
    const auto affinity = [](const char* expression) {
        return pod(std::string(R"("affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [)") + expression + "]}]}}}");
    };
    EXPECT_EQ(verdict(affinity(R"({"key": "zone", "operator": "In", "values": ["x", "a"]})")), "");
    EXPECT_EQ(verdict(affinity(R"({"key": "zone", "operator": "NotIn", "values": ["a"]})")), mismatch);
    EXPECT_EQ(verdict(affinity(R"({"key": "none", "operator": "DoesNotExist"})")), "");
    EXPECT_EQ(verdict(affinity(R"({"key": "none", "operator": "Exists"})")), mismatch);
    EXPECT_EQ(verdict(affinity(R"({"key": "cores", "operator": "Gt", "values": ["4"]})")), "");
    EXPECT_EQ(verdict(affinity(R"({"key": "cores", "operator": "Lt", "values": ["4"]})")), mismatch);
    EXPECT_EQ(verdict(affinity(R"({"key": "zone", "operator": "Sideways"})")), mismatch);
}

TEST(admission, names_the_field_and_the_missing_capability) {
    const auto needs = [](const char* what, const char* capability) {
        return std::string("PodFeatureUnsupported: ") + what + ": needs a plugin that offers " + capability +
               ", and this node binds none";
    };
    EXPECT_EQ(verdict(pod(R"("volumes": [{"name": "d", "hostPath": {"path": "/"}}])")),
              needs("spec.volumes[0] (hostPath)", "gantry.volume"));
    EXPECT_EQ(verdict(pod("", R"(, "readinessProbe": {"exec": {"command": ["true"]}})")),
              needs("spec.containers[0].readinessProbe", "gantry.probe"));
    EXPECT_EQ(verdict(pod("", R"(, "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])")),
              needs("spec.containers[0].env[0].valueFrom.secretKeyRef", "gantry.objects"));
    EXPECT_EQ(verdict(pod("", R"(, "envFrom": [{"configMapRef": {"name": "m"}}])")),
              needs("spec.containers[0].envFrom[0]", "gantry.objects"));
    EXPECT_TRUE(verdict(pod(R"("hostUsers": false)")).starts_with("PodFeatureUnsupported: spec.hostUsers"));
    EXPECT_TRUE(verdict(pod("", R"(, "lifecycle": {"preStop": {"sleep": {"seconds": 1}}})"))
                    .starts_with("PodFeatureUnsupported: spec.containers[0].lifecycle.preStop"));
    auto f = facts();
    f.bound = {.volumes = true, .probes = true, .objects = true};
    EXPECT_EQ(verdict(pod(R"("volumes": [{"name": "d", "emptyDir": {}}])", R"(, "readinessProbe": {"exec": {}})"), {}, f), "");
}

} // namespace
} // namespace gantry::core
