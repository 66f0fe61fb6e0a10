#include <gtest/gtest.h>

#include "gantry/model/defaults.hpp"

using namespace gantry::model;

namespace {

pod good() {
    pod p;
    p.metadata.name = "web";
    p.metadata.uid = "u-1";
    p.spec.containers.push_back({.name = "c", .image = "nginx:1"});
    set_defaults(p);
    return p;
}

std::string first_error(const pod& p) {
    const auto errors = validate(p);
    return errors.empty() ? "" : errors[0].to_string();
}

TEST(pod_validation, accepts_a_plain_pod) { EXPECT_EQ(first_error(good()), ""); }

TEST(pod_validation, wants_names_that_are_names) {
    auto p = good();
    p.metadata.name = "Web";
    EXPECT_TRUE(first_error(p).starts_with("metadata.name: Invalid value: \"Web\": a lowercase RFC 1123 subdomain"));
    p = good();
    p.spec.containers[0].name = "";
    EXPECT_EQ(first_error(p), "spec.containers[0].name: Required value");
    p.spec.containers[0].name = std::string(64, 'a');
    EXPECT_TRUE(first_error(p).ends_with("must be no more than 63 characters"));
    p = good();
    p.metadata.labels["bad key"] = "v";
    EXPECT_TRUE(first_error(p).starts_with("metadata.labels: Invalid value: \"bad key\": name part must consist"));
    p = good();
    p.metadata.labels["ok"] = "-v";
    EXPECT_TRUE(first_error(p).starts_with("metadata.labels: Invalid value: \"-v\": a valid label must be"));
}

TEST(pod_validation, refuses_uids_that_could_leave_their_directory) {
    auto p = good();
    p.metadata.uid = "../../etc";
    EXPECT_TRUE(first_error(p).starts_with("metadata.uid: Invalid value: \"../../etc\""));
}

TEST(pod_validation, finds_duplicates_across_lists) {
    auto p = good();
    p.spec.init_containers.push_back(p.spec.containers[0]);
    EXPECT_EQ(first_error(p), "spec.initContainers[0].name: Duplicate value: \"c\"");
    p = good();
    p.spec.containers.push_back({.name = "d", .image = "x"});
    for (auto& c : p.spec.containers) c.ports = {{.host_port = 80, .container_port = 80}};
    set_defaults(p);
    EXPECT_EQ(first_error(p), "spec.containers[1].ports[0].hostPort: Duplicate value: \"TCP//80\"");
    p.spec.containers[1].ports[0].protocol = "UDP";
    EXPECT_EQ(first_error(p), "");
}

TEST(pod_validation, checks_ports) {
    auto p = good();
    p.spec.containers[0].ports = {{.name = "Web", .host_port = 70000, .container_port = 0, .protocol = "tcp"}};
    const auto errors = validate(p);
    ASSERT_EQ(errors.size(), 4u);
    EXPECT_EQ(errors[0].to_string(), "spec.containers[0].ports[0].name: Invalid value: \"Web\": must contain only "
                                     "alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    EXPECT_EQ(errors[1].to_string(), "spec.containers[0].ports[0].containerPort: Required value");
    EXPECT_EQ(errors[2].to_string(), "spec.containers[0].ports[0].protocol: Unsupported value: \"tcp\": supported "
                                     "values: \"SCTP\", \"TCP\", \"UDP\"");
    EXPECT_EQ(errors[3].to_string(),
              "spec.containers[0].ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive");
}

TEST(pod_validation, checks_resources) {
    auto p = good();
    auto& resources = p.spec.containers[0].resources.ensure();
    resources.limits["cpu"] = *quantity::parse("1");
    resources.requests["cpu"] = *quantity::parse("1500m");
    EXPECT_EQ(first_error(p), "spec.containers[0].resources.requests: Invalid value: \"1500m\": must be less than or "
                              "equal to cpu limit of 1");
    resources.requests["cpu"] = *quantity::parse("-1");
    EXPECT_EQ(first_error(p), "spec.containers[0].resources.requests.cpu: Invalid value: \"-1\": must be greater than "
                              "or equal to 0");
    resources.requests.clear();
    resources.limits = {{"example.com/gadget", *quantity::parse("500m")}};
    EXPECT_EQ(first_error(p), "spec.containers[0].resources.limits[example.com/gadget]: Invalid value: \"500m\": must "
                              "be an integer");
}

TEST(pod_validation, checks_environment) {
    auto p = good();
    auto& env = p.spec.containers[0].env;
    env.push_back({.name = "A=B", .value = "x"});
    EXPECT_TRUE(first_error(p).starts_with("spec.containers[0].env[0].name: Invalid value: \"A=B\""));
    env = {{.name = "http.port-9", .value = "x"}};
    EXPECT_EQ(first_error(p), "");
    env_var_source from;
    from.field_ref = object_field_selector{.field_path = "status.phase"};
    env = {{.name = "A", .value_from = from}};
    EXPECT_TRUE(first_error(p).starts_with(
        "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\""));
    env[0].value_from->field_ref->field_path = "metadata.labels['app']";
    EXPECT_EQ(first_error(p), "");
    env[0].value = "both";
    EXPECT_EQ(first_error(p), "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when "
                              "`value` is not empty");
}

TEST(pod_validation, checks_policies_and_combinations) {
    auto p = good();
    p.spec.restart_policy = "Sometimes";
    EXPECT_EQ(first_error(p), "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", "
                              "\"Never\", \"OnFailure\"");
    p = good();
    p.spec.dns_policy = "None";
    EXPECT_EQ(first_error(p), "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver "
                              "when `dnsPolicy` is None");
    p = good();
    p.spec.host_pid = true;
    p.spec.share_process_namespace = true;
    EXPECT_TRUE(first_error(p).ends_with("ShareProcessNamespace and HostPID cannot both be enabled"));
    p = good();
    p.spec.containers[0].volume_mounts.push_back({.name = "d", .mount_path = "/d"});
    EXPECT_EQ(first_error(p), "spec.containers[0].volumeMounts[0].name: Not found: \"d\"");
    p = good();
    auto& sc = p.spec.containers[0].security_context.ensure();
    sc.privileged = true;
    sc.allow_privilege_escalation = false;
    EXPECT_TRUE(first_error(p).starts_with("spec.containers[0].securityContext: Invalid value: \"\": cannot set"));
    p = good();
    p.spec.containers.clear();
    EXPECT_EQ(first_error(p), "spec.containers: Required value");
}

TEST(pod_validation, lists_every_fault_in_one_message) {
    const auto p = admit_pod(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
                                 "spec": {"containers": [{"name": "a"}, {"image": "x"}]}})",
                             "/etc/m/web.yaml");
    ASSERT_FALSE(p);
    EXPECT_EQ(p.error().message, "/etc/m/web.yaml: Pod \"web\" is invalid: [spec.containers[0].image: Required value, "
                                 "spec.containers[1].name: Required value]");
}

} // namespace
