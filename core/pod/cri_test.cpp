#include "core/pod/cri.hpp"

#include <gmock/gmock.h>

#include "core/pod/pod_fixture.hpp"
#include "core/pod/security.hpp"
#include "proto/cri.pb.h"

namespace gantry::core {
namespace {

namespace cri = ::runtime::v1;
using testing::pod_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

cri::ContainerConfig config_of(const model::pod& pod, const container_facts& facts = {}, const machine_facts& machine = {}) {
    cri::ContainerConfig out;
    const auto filled = fill_container_config(out, pod, pod.spec.containers[0], facts, machine);
    EXPECT_TRUE(filled) << (filled ? "" : filled.error().message);
    return out;
}

TEST(container_config, carries_what_the_spec_says) {
    const auto pod = pod_of(R"j({"terminationGracePeriodSeconds": 7, "containers": [{"name": "c", "image": "reg/x:1",
        "command": ["$(A)"], "args": ["b"], "workingDir": "/w", "tty": true, "stdin": true,
        "env": [{"name": "A", "value": "1"}], "lifecycle": {"stopSignal": "SIGRTMIN+3"}}]})j");
    container_facts facts;
    facts.attempt = 2;
    facts.image.id = "sha256:9";
    facts.hosts_path = "/state/etc-hosts";
    const auto c = config_of(pod, facts);
    EXPECT_EQ(c.metadata().name(), "c");
    EXPECT_EQ(c.metadata().attempt(), 2u);
    EXPECT_EQ(c.image().image(), "sha256:9");
    EXPECT_EQ(c.image().user_specified_image(), "reg/x:1");
    EXPECT_THAT(c.command(), ElementsAre("1"));
    EXPECT_THAT(c.args(), ElementsAre("b"));
    EXPECT_EQ(c.working_dir(), "/w");
    EXPECT_EQ(c.log_path(), "c/2.log");
    EXPECT_TRUE(c.tty() && c.stdin());
    EXPECT_EQ(c.stop_signal(), cri::SIGNAL_SIGRTMINPLUS3);
    EXPECT_EQ(c.mounts(0).container_path(), "/etc/hosts");
    EXPECT_EQ(c.mounts(0).host_path(), "/state/etc-hosts");
    EXPECT_THAT(c.labels(), Contains(Pair("io.kubernetes.pod.uid", "u-1")));
    EXPECT_THAT(c.labels(), Contains(Pair("io.kubernetes.container.name", "c")));
    EXPECT_THAT(c.annotations(), Contains(Pair("io.kubernetes.container.restartCount", "2")));
    EXPECT_THAT(c.annotations(), Contains(Pair("io.kubernetes.pod.terminationGracePeriod", "7")));
    EXPECT_THAT(c.annotations(), Contains(Pair("io.kubernetes.container.hash", to_hex(container_hash(pod.spec.containers[0])))));
}

TEST(container_config, limits_as_the_kubelet_does) {
    const auto pod = pod_of(R"({"containers": [{"name": "c", "image": "i:1",
        "resources": {"requests": {"memory": "32Mi"}, "limits": {"cpu": "1m", "memory": "64Mi"}}}]})");
    machine_facts machine;
    machine.memory_capacity = 64ll << 20;
    auto r = config_of(pod, {}, machine).linux().resources();
    EXPECT_EQ(r.cpu_shares(), 2);
    EXPECT_EQ(r.cpu_quota(), 1000);
    EXPECT_EQ(r.cpu_period(), 100000);
    EXPECT_EQ(r.memory_limit_in_bytes(), 64 << 20);
    EXPECT_EQ(r.oom_score_adj(), 500);
    EXPECT_TRUE(r.unified().empty());
    machine.cgroup_version = 2;
    EXPECT_THAT(config_of(pod, {}, machine).linux().resources().unified(), Contains(Pair("memory.oom.group", "1")));
}

TEST(security, takes_the_container_over_the_pod_over_the_image) {
    const auto pod = pod_of(R"({"shareProcessNamespace": true, "hostIPC": true,
        "securityContext": {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [5],
                            "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "image": "i:1", "securityContext": {"runAsUser": 7, "readOnlyRootFilesystem": true,
            "allowPrivilegeEscalation": false, "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
            "seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}}]})");
    container_facts facts;
    facts.image.uid = 33;
    machine_facts machine;
    machine.seccomp_dir = "/etc/seccomp";
    const auto s = config_of(pod, facts, machine).linux().security_context();
    EXPECT_EQ(s.run_as_user().value(), 7);
    EXPECT_EQ(s.run_as_group().value(), 3000);
    EXPECT_THAT(s.supplemental_groups(), ElementsAre(2000, 5));
    EXPECT_TRUE(s.readonly_rootfs());
    EXPECT_TRUE(s.no_new_privs());
    EXPECT_FALSE(s.privileged());
    EXPECT_THAT(s.capabilities().add_capabilities(), ElementsAre("NET_ADMIN"));
    EXPECT_THAT(s.capabilities().drop_capabilities(), ElementsAre("ALL"));
    EXPECT_EQ(s.seccomp().profile_type(), cri::SecurityProfile::Localhost);
    EXPECT_EQ(s.seccomp().localhost_ref(), "/etc/seccomp/a.json");
    EXPECT_EQ(s.namespace_options().pid(), cri::POD);
    EXPECT_EQ(s.namespace_options().ipc(), cri::NODE);
    EXPECT_EQ(s.namespace_options().network(), cri::POD);
    EXPECT_THAT(s.masked_paths(), Contains("/proc/kcore"));
    EXPECT_THAT(s.readonly_paths(), Contains("/proc/sys"));
}

TEST(security, falls_back_to_the_images_user) {
    const auto pod = pod_of(R"({"containers": [{"name": "c", "image": "i:1"}]})");
    container_facts facts;
    facts.image.username = "www-data";
    const auto s = config_of(pod, facts).linux().security_context();
    EXPECT_FALSE(s.has_run_as_user());
    EXPECT_EQ(s.run_as_username(), "www-data");
    EXPECT_EQ(s.seccomp().profile_type(), cri::SecurityProfile::Unconfined);
    EXPECT_EQ(s.namespace_options().pid(), cri::CONTAINER);
    EXPECT_FALSE(s.no_new_privs());
}

TEST(security, unmasks_proc_on_request) {
    const auto pod = pod_of(R"({"containers": [{"name": "c", "image": "i:1", "securityContext": {"procMount": "Unmasked"}}]})");
    const auto s = config_of(pod).linux().security_context();
    EXPECT_TRUE(s.masked_paths().empty());
    EXPECT_TRUE(s.readonly_paths().empty());
}

TEST(run_as_non_root, refuses_in_the_kubelets_words) {
    auto pod = pod_of(R"({"securityContext": {"runAsNonRoot": true}, "containers": [{"name": "c", "image": "i:1"}]})");
    const auto& c = pod.spec.containers[0];
    EXPECT_EQ(check_non_root(pod, c, {}),
              "container has runAsNonRoot and image will run as root (pod: \"p_oracle(u-1)\", container: c)");
    image_facts image;
    image.username = "www-data";
    EXPECT_EQ(check_non_root(pod, c, image), "container has runAsNonRoot and image has non-numeric user (www-data), cannot "
                                             "verify user is non-root (pod: \"p_oracle(u-1)\", container: c)");
    image.uid = 1234;
    EXPECT_EQ(check_non_root(pod, c, image), "");
    pod.spec.security_context->run_as_user = 65534;
    EXPECT_EQ(check_non_root(pod, c, {}), "");
    pod.spec.security_context->run_as_user = 0;
    EXPECT_EQ(check_non_root(pod, c, {}),
              "container's runAsUser breaks non-root policy (pod: \"p_oracle(u-1)\", container: c)");
}

TEST(sandbox_config, carries_names_network_and_limits) {
    auto pod = pod_of(R"({"securityContext": {"sysctls": [{"name": "net/ipv4/ping_group_range", "value": "0 1"}]},
        "containers": [{"name": "c", "image": "i:1", "securityContext": {"privileged": true},
            "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "UDP", "hostIP": "127.0.0.1"}, {"containerPort": 81}],
            "resources": {"limits": {"cpu": "1", "memory": "64Mi"}}}]})");
    pod.metadata.labels["app"] = "web";
    pod.metadata.annotations["note"] = "n";
    cri::PodSandboxConfig s;
    fill_sandbox_config(s, pod, {.attempt = 1, .cgroup_parent = "/g/kubepods/podu-1", .log_dir = "/logs/x", .hostname = "p",
                                 .dns = {{"1.1.1.1"}, {"a"}, {"ndots:5"}}});
    EXPECT_EQ(s.metadata().uid(), "u-1");
    EXPECT_EQ(s.metadata().namespace_(), "oracle");
    EXPECT_EQ(s.metadata().attempt(), 1u);
    EXPECT_EQ(s.hostname(), "p");
    EXPECT_EQ(s.log_directory(), "/logs/x");
    EXPECT_THAT(s.dns_config().servers(), ElementsAre("1.1.1.1"));
    ASSERT_EQ(s.port_mappings_size(), 1);
    EXPECT_EQ(s.port_mappings(0).host_port(), 8080);
    EXPECT_EQ(s.port_mappings(0).protocol(), cri::UDP);
    EXPECT_EQ(s.port_mappings(0).host_ip(), "127.0.0.1");
    EXPECT_THAT(s.labels(), Contains(Pair("app", "web")));
    EXPECT_THAT(s.labels(), Contains(Pair("io.kubernetes.pod.name", "p")));
    EXPECT_THAT(s.annotations(), Contains(Pair("note", "n")));
    EXPECT_EQ(s.linux().cgroup_parent(), "/g/kubepods/podu-1");
    EXPECT_THAT(s.linux().sysctls(), Contains(Pair("net.ipv4.ping_group_range", "0 1")));
    EXPECT_TRUE(s.linux().security_context().privileged());
    EXPECT_EQ(s.linux().security_context().seccomp().profile_type(), cri::SecurityProfile::RuntimeDefault);
    EXPECT_EQ(s.linux().resources().cpu_quota(), 100000);
    EXPECT_EQ(s.linux().resources().memory_limit_in_bytes(), 64 << 20);
}

TEST(sandbox_config, publishes_no_ports_on_the_host_network) {
    const auto pod = pod_of(R"({"hostNetwork": true, "containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}]}]})");
    cri::PodSandboxConfig s;
    fill_sandbox_config(s, pod, {.hostname = "node"});
    EXPECT_EQ(s.port_mappings_size(), 0);
    EXPECT_EQ(s.hostname(), "");
    EXPECT_EQ(s.linux().security_context().namespace_options().network(), cri::NODE);
}

} // namespace
} // namespace gantry::core
