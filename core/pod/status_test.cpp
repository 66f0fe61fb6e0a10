// Facts of a real node: what a kubelet of v1.36 reported for the same pods.
#include "core/pod/status.hpp"

#include <algorithm>
#include <tuple>

#include <gmock/gmock.h>

#include "core/pod/pod_fixture.hpp"

namespace gantry::core {
namespace {

using testing::at;
using testing::pod_of;
using testing::pod_with;
using testing::world;
using ::testing::ElementsAre;

/// type, status, reason, message; sorted by type as the recorded facts are.
using fact = std::tuple<std::string, std::string, std::string, std::string>;

std::vector<fact> conditions(const model::pod_status& s) {
    std::vector<fact> out;
    for (const auto& c : s.conditions) out.emplace_back(c.type, c.status, c.reason, c.message);
    std::sort(out.begin(), out.end());
    return out;
}

struct looker {
    model::pod pod;
    waiting_reasons waiting{};
    pod_stage stage = pod_stage::running;
    bool initialized = true;
    const model::pod_status* before = nullptr;

    model::pod_status look(const world& w) const {
        status_input in{.pod = pod, .view = w.view, .waiting = waiting};
        in.stage = stage;
        in.initialized = initialized;
        in.before = before;
        in.now = at(100);
        in.start_time = at(0);
        in.runtime_name = "native";
        return make_status(in);
    }
};

std::vector<fact> done(const char* phase_reason, bool initialized_says_so, bool sandbox) {
    return {{"ContainersReady", "False", phase_reason, ""},
            {"Initialized", "True", initialized_says_so ? phase_reason : "", ""},
            {"PodReadyToStartContainers", sandbox ? "True" : "False", "", ""},
            {"PodScheduled", "True", "", ""},
            {"Ready", "False", phase_reason, ""}};
}

std::vector<fact> unready(const std::string& names) {
    const auto message = "containers with unready status: [" + names + "]";
    return {{"ContainersReady", "False", "ContainersNotReady", message},
            {"Initialized", "True", "", ""},
            {"PodReadyToStartContainers", "True", "", ""},
            {"PodScheduled", "True", "", ""},
            {"Ready", "False", "ContainersNotReady", message}};
}

TEST(pod_status, of_a_pod_that_completed) {
    looker l{pod_with("Never", {"c"}), {}, pod_stage::ended};
    const auto s = l.look(world().sandbox(false).exited("c", 0));
    EXPECT_EQ(s.phase, "Succeeded");
    EXPECT_EQ(s.qos_class, "BestEffort");
    EXPECT_EQ(s.pod_ip, "10.88.0.2");
    EXPECT_EQ(conditions(s), done("PodCompleted", true, false));
    const auto& c = s.container_statuses.at(0);
    EXPECT_FALSE(c.ready);
    EXPECT_EQ(c.started, false);
    EXPECT_EQ(c.restart_count.value, 0);
    EXPECT_EQ(c.state.value.terminated->reason, "Completed");
    EXPECT_EQ(c.container_id, "native://c-0");
    EXPECT_EQ(c.image_id.value, "busybox@sha256:1");
}

TEST(pod_status, of_a_pod_that_failed) {
    looker l{pod_with("Never", {"c"}), {}, pod_stage::ended};
    const auto s = l.look(world().sandbox(false).exited("c", 1));
    EXPECT_EQ(s.phase, "Failed");
    EXPECT_EQ(conditions(s), done("PodFailed", false, false));
}

TEST(pod_status, tells_an_exit_by_oom_from_a_plain_137) {
    looker l{pod_with("Never", {"c"}), {}, pod_stage::ended};
    EXPECT_EQ(l.look(world().sandbox(false).exited("c", 137)).container_statuses[0].state.value.terminated->reason, "Error");
    EXPECT_EQ(l.look(world().sandbox(false).exited("c", 137, 0, "OOMKilled"))
                  .container_statuses[0]
                  .state.value.terminated->reason,
              "OOMKilled");
}

TEST(pod_status, of_a_running_pod) {
    looker l{pod_with("Always", {"c"})};
    const auto s = l.look(world().sandbox().running("c"));
    EXPECT_EQ(s.phase, "Running");
    EXPECT_EQ(s.start_time, "2023-11-14T22:13:20Z");
    EXPECT_TRUE(s.container_statuses[0].ready);
    EXPECT_EQ(s.container_statuses[0].started, true);
    for (const auto& [type, status, reason, message] : conditions(s)) EXPECT_EQ(status, "True") << type;
}

TEST(pod_status, of_one_that_failed_while_another_runs) {
    looker l{pod_with("Never", {"a", "b"})};
    const auto s = l.look(world().sandbox().running("a").exited("b", 4));
    EXPECT_EQ(s.phase, "Running");
    EXPECT_EQ(conditions(s), unready("b"));
}

TEST(pod_status, of_a_crash_loop) {
    looker l{pod_with("Always", {"c"})};
    l.waiting["c"] = {"CrashLoopBackOff", "back-off 10s restarting failed container=c pod=p_oracle(u-1)"};
    const auto s = l.look(world().sandbox().exited("c", 1, 0).exited("c", 1, 1));
    EXPECT_EQ(s.phase, "Running");
    EXPECT_EQ(conditions(s), unready("c"));
    const auto& c = s.container_statuses[0];
    EXPECT_EQ(c.state.value.waiting->reason, "CrashLoopBackOff");
    EXPECT_EQ(c.last_state.value.terminated->exit_code.value, 1);
    EXPECT_EQ(c.last_state.value.terminated->container_id, "native://c-1");
    EXPECT_EQ(c.restart_count.value, 1);
    EXPECT_EQ(c.container_id, "native://c-1");
}

TEST(pod_status, keeps_the_last_end_of_a_restarted_container) {
    looker l{pod_with("OnFailure", {"c"}), {}, pod_stage::ended};
    const auto s = l.look(world().sandbox(false).exited("c", 1, 0).exited("c", 0, 1));
    EXPECT_EQ(s.phase, "Succeeded");
    EXPECT_EQ(s.container_statuses[0].restart_count.value, 1);
    EXPECT_EQ(s.container_statuses[0].last_state.value.terminated->reason, "Error");
}

TEST(pod_status, of_a_missing_image) {
    looker l{pod_with("Never", {"c"})};
    l.waiting["c"] = {"ErrImageNeverPull", "Container image \"busybox:1\" is not present with pull policy of Never"};
    const auto s = l.look(world().sandbox());
    EXPECT_EQ(s.phase, "Pending");
    EXPECT_EQ(conditions(s), unready("c"));
    EXPECT_EQ(s.container_statuses[0].state.value.waiting->reason, "ErrImageNeverPull");
    EXPECT_EQ(s.container_statuses[0].container_id, "");
    EXPECT_EQ(s.container_statuses[0].image_id.value, "");
}

TEST(pod_status, of_a_failed_init_container) {
    looker l{pod_with("Never", {"c"}, {"i1", "i2", "i3"}), {}, pod_stage::ended, false};
    const auto s = l.look(world().sandbox(false).exited("i1", 0).exited("i2", 7));
    EXPECT_EQ(s.phase, "Failed");
    EXPECT_EQ(conditions(s),
              (std::vector<fact>{{"ContainersReady", "False", "PodFailed", ""},
                                 {"Initialized", "False", "ContainersNotInitialized",
                                  "containers with incomplete status: [i2 i3]"},
                                 {"PodReadyToStartContainers", "False", "", ""},
                                 {"PodScheduled", "True", "", ""},
                                 {"Ready", "False", "PodFailed", ""}}));
    EXPECT_TRUE(s.init_container_statuses[0].ready);
    EXPECT_EQ(s.init_container_statuses[1].state.value.terminated->exit_code.value, 7);
    EXPECT_EQ(s.init_container_statuses[2].state.value.waiting->reason, "PodInitializing");
    EXPECT_EQ(s.container_statuses[0].state.value.waiting->reason, "PodInitializing");
}

TEST(pod_status, of_an_init_container_that_is_retried) {
    looker l{pod_with("Always", {"c"}, {"i"})};
    l.waiting["i"] = {"CrashLoopBackOff", "back-off"};
    const auto s = l.look(world().sandbox().exited("i", 3));
    EXPECT_EQ(s.phase, "Pending");
    EXPECT_EQ(std::get<2>(conditions(s)[1]), "ContainersNotInitialized");
    EXPECT_EQ(std::get<3>(conditions(s)[1]), "containers with incomplete status: [i]");
    EXPECT_EQ(s.init_container_statuses[0].last_state.value.terminated->exit_code.value, 3);
    EXPECT_EQ(s.container_statuses[0].state.value.waiting->reason, "PodInitializing");
}

TEST(pod_status, of_a_sidecar_that_was_stopped_with_the_pod) {
    looker l{pod_of(R"({"restartPolicy": "Never",
        "initContainers": [{"name": "s", "image": "i:1", "restartPolicy": "Always"}],
        "containers": [{"name": "c", "image": "i:1"}]})"),
             {},
             pod_stage::ended};
    auto s = l.look(world().sandbox(false).exited("s", 9).exited("c", 0));
    EXPECT_EQ(s.phase, "Succeeded");
    EXPECT_EQ(conditions(s), done("PodCompleted", true, false));
    EXPECT_FALSE(s.init_container_statuses[0].ready);
    s = l.look(world().sandbox(false).exited("s", 0).exited("c", 6));
    EXPECT_EQ(s.phase, "Failed");
    EXPECT_EQ(conditions(s), done("PodFailed", false, false));
}

TEST(pod_status, of_a_pod_deleted_while_its_image_was_missing) {
    looker l{pod_with("Always", {"c"}), {}, pod_stage::ended};
    const auto s = l.look(world().sandbox(false));
    EXPECT_EQ(s.phase, "Failed");
    const auto& end = *s.container_statuses[0].state.value.terminated;
    EXPECT_EQ(end.reason, "ContainerStatusUnknown");
    EXPECT_EQ(end.exit_code.value, 137);
    EXPECT_EQ(end.message, "The container could not be located when the pod was terminated");
}

TEST(pod_status, of_a_pod_that_ended_while_it_initialised) {
    looker l{pod_with("Never", {"c"}, {"i"}), {}, pod_stage::ended, false};
    const auto s = l.look(world().sandbox(false).exited("i", 0));
    EXPECT_EQ(s.phase, "Failed");
    EXPECT_EQ(s.container_statuses[0].state.value.waiting->reason, "PodInitializing");
    EXPECT_TRUE(s.init_container_statuses[0].ready);
}

TEST(pod_status, counts_a_container_that_vanished_while_it_ran) {
    looker l{pod_with("Always", {"c"})};
    const auto before = l.look(world().sandbox().running("c", 2));
    l.before = &before;
    const auto s = l.look(world().sandbox(true, 1));
    EXPECT_EQ(s.container_statuses[0].restart_count.value, 3);
    EXPECT_EQ(s.container_statuses[0].last_state.value.terminated->reason, "ContainerStatusUnknown");
    EXPECT_EQ(next_attempt(world().view, "c", &before), 3u);
    EXPECT_EQ(next_attempt(world().view, "c", &s), 3u);
    EXPECT_EQ(next_attempt(world().exited("c", 1, 4).view, "c", &before), 5u);
}

TEST(pod_status, moves_transition_times_only_with_the_status) {
    looker l{pod_with("Always", {"c"})};
    auto before = l.look(world().sandbox());
    for (auto& c : before.conditions) c.last_transition_time = "earlier";
    before.conditions.push_back({.type = "example.com/gate", .status = "True"});
    l.before = &before;
    const auto s = l.look(world().sandbox().running("c"));
    for (const auto& c : s.conditions) {
        const bool changed = c.type == "Ready" || c.type == "ContainersReady";
        EXPECT_EQ(c.last_transition_time, changed ? "2023-11-14T22:15:00Z" : c.type == "example.com/gate" ? "" : "earlier")
            << c.type;
    }
    EXPECT_EQ(s.conditions.back().type, "example.com/gate");
}

TEST(pod_status, never_leaves_a_terminal_phase) {
    looker l{pod_with("Always", {"c"}), {}, pod_stage::ended};
    model::pod_status before;
    before.phase = "Succeeded";
    l.before = &before;
    EXPECT_EQ(l.look(world().sandbox(false).exited("c", 1)).phase, "Succeeded");
}

TEST(pod_status, of_a_refused_pod) {
    const auto s = rejected_status(pod_with("Never", {"c"}), "SysctlForbidden",
                                   "forbidden sysctl: \"kernel.msgmax\" not allowlisted", at(0));
    EXPECT_EQ(s.phase, "Failed");
    EXPECT_EQ(s.reason, "SysctlForbidden");
    EXPECT_EQ(s.message, "Pod was rejected: forbidden sysctl: \"kernel.msgmax\" not allowlisted");
    EXPECT_TRUE(s.conditions.empty());
    EXPECT_TRUE(s.container_statuses.empty());
}

TEST(pod_status, waits_for_readiness_gates) {
    looker l{pod_of(R"({"readinessGates": [{"conditionType": "example.com/ok"}],
                        "containers": [{"name": "c", "image": "i:1"}]})")};
    const auto s = l.look(world().sandbox().running("c"));
    EXPECT_EQ(conditions(s)[4],
              (fact{"Ready", "False", "ReadinessGatesNotReady",
                    "corresponding condition of pod readiness gate \"example.com/ok\" does not exist."}));
}

} // namespace
} // namespace gantry::core
