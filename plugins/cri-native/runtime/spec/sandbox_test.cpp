#include "plugins/cri-native/runtime/spec/sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cri_native {
namespace {

namespace cri = runtime::v1;

cri::RunPodSandboxRequest request() {
    cri::RunPodSandboxRequest made;
    made.mutable_config()->mutable_metadata()->set_name("web");
    made.mutable_config()->mutable_metadata()->set_namespace_("default");
    made.mutable_config()->mutable_metadata()->set_uid("u1");
    return made;
}

cri::NamespaceOption& namespaces(cri::RunPodSandboxRequest& of) {
    return *of.mutable_config()->mutable_linux()->mutable_security_context()->mutable_namespace_options();
}

launch::sandbox_plan plan_for(const cri::RunPodSandboxRequest& of) {
    store::SandboxRecord record;
    record.set_id("s1");
    *record.mutable_config() = of.config();
    record.set_hostname("web");
    return sandbox_plan_of(record, "/run/s1", 1 << 20, {.v1 = {}, .v2 = "/sys/fs/cgroup/x"});
}

std::vector<std::string> sysctls_of(const launch::sandbox_plan& plan) {
    std::vector<std::string> lines;
    for (const auto& one : plan.sysctls) lines.push_back(one.name + "=" + one.value);
    return lines;
}

TEST(check_sandbox, takes_the_plainest_pod) { EXPECT_TRUE(check_sandbox(request())); }

TEST(check_sandbox, refuses_what_is_missing_or_unsupported) {
    EXPECT_EQ(check_sandbox({}).error().code, code::invalid);
    auto handler = request();
    handler.set_runtime_handler("kata");
    EXPECT_THAT(check_sandbox(handler).error().message, testing::HasSubstr("kata"));
    auto hostname = request();
    hostname.mutable_config()->set_hostname(std::string(65, 'x'));
    EXPECT_FALSE(check_sandbox(hostname));
    auto users = request();
    namespaces(users).mutable_userns_options()->set_mode(cri::POD);
    EXPECT_EQ(check_sandbox(users).error().code, code::unsupported);
    auto parent = request();
    parent.mutable_config()->mutable_linux()->set_cgroup_parent("/kubepods/../..");
    EXPECT_FALSE(check_sandbox(parent));
}

TEST(check_sandbox, takes_only_sysctls_of_the_pods_own_namespaces) {
    auto safe = request();
    (*safe.mutable_config()->mutable_linux()->mutable_sysctls())["net.core.somaxconn"] = "1024";
    (*safe.mutable_config()->mutable_linux()->mutable_sysctls())["kernel.shmmax"] = "1";
    (*safe.mutable_config()->mutable_linux()->mutable_sysctls())["net/ipv4/ip_forward"] = "1";
    EXPECT_TRUE(check_sandbox(safe));
    namespaces(safe).set_network(cri::NODE);
    EXPECT_FALSE(check_sandbox(safe));
    for (const auto* name : {"vm.swappiness", "kernel.panic", "kernel.shm", "fs.file-max"}) {
        auto bad = request();
        (*bad.mutable_config()->mutable_linux()->mutable_sysctls())[name] = "1";
        EXPECT_FALSE(check_sandbox(bad)) << name;
    }
}

TEST(sandbox_plan_of, gives_a_pod_its_namespaces) {
    const auto plan = plan_for(request());
    EXPECT_FALSE(plan.host_network || plan.host_uts || plan.host_ipc);
    EXPECT_TRUE(plan.shared_pid); // CRI's default is POD
    EXPECT_EQ(plan.shm_bytes, 1u << 20);
    EXPECT_EQ(plan.hostname, "web");
}

TEST(sandbox_plan_of, shares_the_nodes_namespaces_when_asked) {
    auto host = request();
    namespaces(host).set_network(cri::NODE);
    namespaces(host).set_ipc(cri::NODE);
    namespaces(host).set_pid(cri::NODE);
    const auto plan = plan_for(host);
    EXPECT_TRUE(plan.host_network && plan.host_uts && plan.host_ipc);
    EXPECT_FALSE(plan.shared_pid);
    EXPECT_EQ(plan.shm_bytes, 0u);
    EXPECT_TRUE(plan.sysctls.empty());
}

TEST(sandbox_plan_of, lets_the_pod_override_the_usual_sysctls) {
    auto own = request();
    (*own.mutable_config()->mutable_linux()->mutable_sysctls())["net.ipv4.ip_unprivileged_port_start"] = "1024";
    EXPECT_THAT(sysctls_of(plan_for(own)), testing::ElementsAre("net.ipv4.ip_unprivileged_port_start=1024",
                                                                "net.ipv4.ping_group_range=0 2147483647"));
}

} // namespace
} // namespace gantry::cri_native
