#include "gantry/model/json.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "gantry/model/defaults.hpp"

namespace json = boost::json;
using namespace gantry::model;

namespace {

pod read(std::string_view text, field_errors& errors) { return pod_from_json(json::parse(text), errors); }

TEST(pod_json, keeps_what_it_does_not_know_at_every_level) {
    constexpr std::string_view text = R"({
        "apiVersion": "v1", "kind": "Pod", "future": {"a": [1, null]},
        "metadata": {"name": "web", "managedFields": [{"manager": "x"}]},
        "spec": {"tolerations": [{"operator": "Exists"}], "hostIPC": true,
                 "containers": [{"name": "c", "image": "i", "resizePolicy": [{"resourceName": "cpu"}],
                                 "livenessProbe": {"exec": {"command": ["true"]}},
                                 "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                                 "resources": {"limits": {"memory": "64Mi"}}}],
                 "volumes": [{"name": "d", "emptyDir": {}}]}})";
    field_errors errors;
    const pod p = read(text, errors);
    EXPECT_TRUE(errors.empty());
    EXPECT_TRUE(p.spec.host_ipc);
    EXPECT_EQ(p.spec.containers[0].resources->limits.at("memory").units(), 64 << 20);
    EXPECT_EQ(to_json(p), json::parse(text));
}

TEST(pod_json, names_the_path_and_value_of_every_wrong_member) {
    field_errors errors;
    const pod p = read(R"({"metadata": {"labels": {"app.kubernetes.io/name": 3}},
        "spec": {"hostNetwork": "yes", "activeDeadlineSeconds": 1.5,
                 "containers": [{"name": "a", "ports": 80, "resources": {"limits": {"memory": "1x"}}}]}})",
                       errors);
    ASSERT_EQ(errors.size(), 5u);
    EXPECT_EQ(errors[0].to_string(), "metadata.labels[app.kubernetes.io/name]: Invalid value: 3: must be a string");
    EXPECT_EQ(errors[1].to_string(), "spec.containers[0].ports: Invalid value: 80: must be a list");
    EXPECT_EQ(errors[2].to_string(),
              "spec.containers[0].resources.limits.memory: Invalid value: \"1x\": quantities must match the regular "
              "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    EXPECT_EQ(errors[3].to_string(), "spec.activeDeadlineSeconds: Invalid value: 1.5E0: must be a whole number");
    EXPECT_EQ(errors[4].to_string(), "spec.hostNetwork: Invalid value: \"yes\": must be true or false");
    EXPECT_EQ(p.spec.containers[0].name, "a");
}

TEST(pod_json, takes_numbers_as_quantities_and_null_as_absent) {
    field_errors errors;
    const pod p = read(R"({"spec": {"nodeName": null, "overhead": {"cpu": 1, "memory": 1e6, "x": 0.5}}})", errors);
    EXPECT_TRUE(errors.empty());
    EXPECT_EQ(p.spec.overhead.at("cpu").milli(), 1000);
    EXPECT_EQ(p.spec.overhead.at("memory").units(), 1'000'000);
    EXPECT_EQ(p.spec.overhead.at("x").milli(), 500);
    EXPECT_EQ(p.spec.node_name, "");
}

TEST(pod_json, writes_status_as_the_api_does) {
    pod_status status;
    status.phase = "Pending";
    auto& c = status.container_statuses.emplace_back();
    c.name = "c";
    c.started = false;
    c.state.value.waiting = container_state_waiting{.reason = "ContainerCreating"};
    status.pod_ips.push_back({.ip = "10.0.0.2"});
    EXPECT_EQ(to_json(status), json::parse(R"({"phase": "Pending", "podIPs": [{"ip": "10.0.0.2"}],
        "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}, "lastState": {},
                               "ready": false, "restartCount": 0, "image": "", "imageID": "", "started": false}]})"));
    EXPECT_EQ(status_from_json(to_json(status)), status);
}

TEST(pod_defaults, are_those_of_the_api) {
    const auto p = admit_pod(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"hostNetwork": true, "containers": [
            {"name": "a", "image": "nginx", "ports": [{"containerPort": 80}],
             "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}},
            {"name": "b", "image": "reg:5000/nginx:1.2"},
            {"name": "c", "image": "nginx@sha256:00"},
            {"name": "d", "image": "reg:5000/x:latest"}]}})",
                             "pod.json");
    ASSERT_TRUE(p) << p.error().message;
    EXPECT_EQ(p->metadata.namespace_, "default");
    EXPECT_EQ(p->spec.restart_policy, "Always");
    EXPECT_EQ(p->spec.dns_policy, "ClusterFirst");
    EXPECT_EQ(p->spec.termination_grace_period_seconds, 30);
    const auto& a = p->spec.containers[0];
    EXPECT_EQ(a.image_pull_policy, "Always");
    EXPECT_EQ(a.ports[0].protocol, "TCP");
    EXPECT_EQ(a.ports[0].host_port, 80);
    EXPECT_EQ(a.resources->requests.at("cpu").milli(), 500);
    EXPECT_EQ(a.resources->requests.at("memory").to_string(), "1Gi");
    EXPECT_EQ(p->spec.containers[1].image_pull_policy, "IfNotPresent");
    EXPECT_EQ(p->spec.containers[2].image_pull_policy, "IfNotPresent");
    EXPECT_EQ(p->spec.containers[3].image_pull_policy, "Always");
    pod again = *p;
    set_defaults(again);
    EXPECT_EQ(again, *p);
}

} // namespace
