#include <gmock/gmock.h>

#include "base/files.hpp"
#include "core/kernel/node_fixture.hpp"

namespace gantry::core {
namespace {

using testing::node_test;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class a_pod : public node_test {
protected:
    void run(const std::string& spec = default_spec) {
        boot();
        add(pod_json("web", "u-1", spec));
        synced();
    }
};

TEST_F(a_pod, becomes_ready) {
    run();
    ASSERT_TRUE(until([&] { return ready("web"); }));
    EXPECT_EQ(status("web"), "Running");
    EXPECT_THAT(events("u-1"),
                ElementsAre("Warning MissingClusterDNS: pod: \"web_ns(u-1)\". kubelet does not have ClusterDNS IP "
                            "configured and cannot create Pod using \"ClusterFirst\" policy. Falling back to \"Default\" "
                            "policy.",
                            "Normal Pulled: Container image \"busybox:1\" already present on machine and can be accessed "
                            "by the pod",
                            "Normal Created: Container created", "Normal Started: Container started"));
    EXPECT_EQ(cgroups, (std::set<std::string>{"u-1"}));
    const auto& request = runtime.sandbox_requests.at(0).config();
    EXPECT_EQ(request.linux().cgroup_parent(), "/gantry-t/kubepods/podu-1");
    EXPECT_EQ(request.log_directory(), dir + "/logs/ns_web_u-1");
    EXPECT_EQ(request.dns_config().servers(0), "192.0.2.53");
    const auto hosts = base::read_file(dir + "/state/pods/u-1/etc-hosts");
    ASSERT_TRUE(hosts);
    EXPECT_THAT(*hosts, HasSubstr("10.88.0.1\tweb\n"));
    const auto s = full_status("web");
    EXPECT_EQ(s.container_statuses[0].container_id, "fake://" + runtime.newest("c")->status.id());
    EXPECT_EQ(s.pod_ip, "10.88.0.1");
    EXPECT_EQ(s.host_ip, "192.0.2.1");
}

TEST_F(a_pod, costs_few_calls) {
    run();
    ASSERT_TRUE(until([&] { return ready("web"); }));
    settle();
    EXPECT_EQ(resources.count("ensure_pod"), 1);
    EXPECT_EQ(runtime.count("run_pod_sandbox"), 1);
    EXPECT_EQ(runtime.count("pod_sandbox_status"), 1);
    EXPECT_EQ(runtime.count("image_status"), 1);
    EXPECT_EQ(runtime.count("create_container"), 1);
    EXPECT_EQ(runtime.count("start_container"), 1);
    EXPECT_EQ(runtime.count("container_status"), 1);
    EXPECT_EQ(runtime.count("list_pod_sandbox"), 1);
    EXPECT_EQ(runtime.count("list_containers"), 1);
}

TEST_F(a_pod, starts_init_containers_before_the_others) {
    run(R"({"initContainers": [{"name": "i1", "image": "busybox:1"}, {"name": "i2", "image": "busybox:1"}],
            "containers": [{"name": "c", "image": "busybox:1"}]})");
    ASSERT_TRUE(until([&] { return runtime.newest("i1") && runtime.running() == 1; }));
    EXPECT_EQ(status("web"), "Init:0/2");
    runtime.exit("i1", 0);
    ASSERT_TRUE(until([&] { return runtime.newest("i2") && runtime.running() == 1; }));
    EXPECT_EQ(runtime.newest("c"), nullptr);
    runtime.exit("i2", 0);
    EXPECT_TRUE(until([&] { return ready("web"); }));
}

TEST_F(a_pod, restarts_what_ends_at_once_and_then_backs_off) {
    run();
    ASSERT_TRUE(until([&] { return ready("web"); }));
    runtime.exit("c", 1);
    ASSERT_TRUE(until([&] { return runtime.created.size() == 2 && runtime.running() == 1; }));
    EXPECT_EQ(runtime.created[1].metadata().attempt(), 1u);
    runtime.exit("c", 1);
    ASSERT_TRUE(until([&] { return status("web") == "CrashLoopBackOff"; }));
    const auto s = full_status("web");
    EXPECT_EQ(s.phase, "Running");
    EXPECT_EQ(s.container_statuses[0].state.value.waiting->message,
              "back-off 40ms restarting failed container=c pod=web_ns(u-1)");
    EXPECT_EQ(s.container_statuses[0].last_state.value.terminated->exit_code.value, 1);
    EXPECT_TRUE(has_event("u-1", "Warning BackOff: Back-off restarting failed container c in pod web_ns(u-1)"));
    const auto explained = node->explain("ns", "web");
    ASSERT_TRUE(explained);
    EXPECT_THAT(explained->waiting_for, StartsWith("container c: back-off 40ms"));
    EXPECT_NE(explained->retry_at, base::wall_time{});
    ASSERT_TRUE(until([&] { return runtime.created.size() == 3 && ready("web"); }));
    settle();
    EXPECT_EQ(runtime.containers.size(), 2u) << "one dead instance is kept for --previous";
    EXPECT_TRUE(node->find_container("ns", "web", "", true));
}

TEST_F(a_pod, completes) {
    run(R"({"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1"}]})");
    ASSERT_TRUE(until([&] { return ready("web"); }));
    runtime.exit("c", 0);
    ASSERT_TRUE(until([&] { return status("web") == "Completed" && cgroups.empty(); }));
    const auto s = full_status("web");
    EXPECT_EQ(s.phase, "Succeeded");
    EXPECT_EQ(s.conditions[0].type, "PodReadyToStartContainers");
    EXPECT_EQ(s.conditions[0].status, "False");
    EXPECT_EQ(runtime.containers.size(), 1u) << "kept for its logs";
    EXPECT_EQ(runtime.sandboxes.begin()->second.state(), ::runtime::v1::SANDBOX_NOTREADY);
}

TEST_F(a_pod, fails_when_its_program_cannot_start) {
    runtime.next_start_fails = "exec: \"/nope\": no such file";
    run(R"({"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1"}]})");
    ASSERT_TRUE(until([&] { return full_status("web").phase == "Failed"; }));
    const auto s = full_status("web");
    const auto& end = *s.container_statuses[0].state.value.terminated;
    EXPECT_EQ(end.reason, "StartError");
    EXPECT_EQ(end.exit_code.value, 128);
    EXPECT_EQ(end.message, "exec: \"/nope\": no such file");
    EXPECT_TRUE(has_event("u-1", "Warning Failed: Error: exec: \"/nope\": no such file"));
}

TEST_F(a_pod, leaves_last_words) {
    run(R"({"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1"},
        {"name": "d", "image": "busybox:1", "terminationMessagePolicy": "FallbackToLogsOnError"}]})");
    ASSERT_TRUE(until([&] { return ready("web"); }));
    const auto& mounts = runtime.created.at(0).mounts();
    ASSERT_EQ(mounts.size(), 2);
    EXPECT_EQ(mounts[1].container_path(), "/dev/termination-log");
    ASSERT_TRUE(base::write_file_atomic(mounts[1].host_path(), "all done"));
    ASSERT_TRUE(base::write_file_atomic(dir + "/logs/ns_web_u-1/d/0.log", "2026-01-01T00:00:00Z stderr F no disk\n"));
    runtime.exit("c", 0);
    runtime.exit("d", 1);
    ASSERT_TRUE(until([&] { return full_status("web").phase == "Failed"; }));
    const auto s = full_status("web");
    EXPECT_EQ(s.container_statuses[0].state.value.terminated->message, "all done");
    EXPECT_EQ(s.container_statuses[1].state.value.terminated->message, "no disk\n");
}

TEST_F(a_pod, waits_for_a_missing_image) {
    run(R"({"containers": [{"name": "c", "image": "none:1", "imagePullPolicy": "Never"}]})");
    ASSERT_TRUE(until([&] { return status("web") == "ErrImageNeverPull"; }));
    EXPECT_EQ(full_status("web").phase, "Pending");
    EXPECT_TRUE(has_event("u-1", "Warning Failed: Error: ErrImageNeverPull"));
}

TEST_F(a_pod, says_why_a_pull_failed_and_backs_off) {
    runtime.on["pull_image"] = [](const std::string&) -> result<std::string> {
        return error{.code = code::unsupported, .message = "this runtime pulls no images; load them"};
    };
    run(R"({"containers": [{"name": "c", "image": "none:1"}]})");
    ASSERT_TRUE(until([&] { return status("web") == "ErrImagePull"; }));
    EXPECT_EQ(full_status("web").container_statuses[0].state.value.waiting->message,
              "this runtime pulls no images; load them");
    EXPECT_TRUE(has_event("u-1", "Warning Failed: Failed to pull image \"none:1\": this runtime pulls no images; load them"));
}

TEST_F(a_pod, shares_a_pull_between_its_containers) {
    runtime.on["pull_image"] = [this](const std::string&) -> result<std::string> {
        runtime.images["none:1"] = runtime.images["busybox:1"];
        return ::runtime::v1::PullImageResponse().SerializeAsString();
    };
    runtime.hold("pull_image");
    run(R"({"containers": [{"name": "a", "image": "none:1"}]})");
    add(pod_json("other", "u-2", R"({"containers": [{"name": "b", "image": "none:1"}]})"));
    ASSERT_TRUE(until([&] { return runtime.holding("pull_image") && runtime.count("image_status") == 2; }));
    settle();
    runtime.release("pull_image");
    ASSERT_TRUE(until([&] { return ready("web") && ready("other"); }));
    EXPECT_EQ(runtime.count("pull_image"), 1);
}

TEST_F(a_pod, names_an_unknown_runtime_class) {
    run(R"({"runtimeClassName": "kata", "containers": [{"name": "c", "image": "busybox:1"}]})");
    ASSERT_TRUE(until([&] { return status("web") == "CreatePodSandboxError"; }));
    EXPECT_EQ(full_status("web").container_statuses[0].state.value.waiting->message,
              "no runtime is bound for RuntimeClass \"kata\" (bind.runtime.handlers)");
}

TEST_F(a_pod, is_refused_when_it_needs_what_is_not_bound) {
    run(R"({"volumes": [{"name": "d", "emptyDir": {}}], "containers": [{"name": "c", "image": "busybox:1"}]})");
    ASSERT_TRUE(until([&] { return full_status("web").phase == "Failed"; }));
    EXPECT_EQ(full_status("web").reason, "PodFeatureUnsupported");
    EXPECT_EQ(full_status("web").message, "Pod was rejected: spec.volumes[0] (emptyDir): needs a plugin that offers "
                                          "gantry.volume, and this node binds none");
    EXPECT_EQ(runtime.count("run_pod_sandbox"), 0);
}

TEST_F(a_pod, tries_its_sandbox_again) {
    runtime.fail("run_pod_sandbox", {.code = code::invalid, .message = "no address left"});
    run();
    ASSERT_TRUE(until([&] { return status("web") == "CreatePodSandboxError"; }));
    EXPECT_TRUE(has_event("u-1", "Warning FailedCreatePodSandBox: Failed to create pod sandbox: no address left"));
    EXPECT_TRUE(until([&] { return ready("web"); }));
}

TEST_F(a_pod, gets_a_new_sandbox_when_its_supervisor_was_lost) {
    run();
    ASSERT_TRUE(until([&] { return ready("web"); }));
    runtime.exit("c", 255, "SupervisorLost");
    ASSERT_TRUE(until([&] { return runtime.sandbox_requests.size() == 2 && ready("web"); }));
    EXPECT_EQ(runtime.sandbox_requests[1].config().metadata().attempt(), 1u);
    EXPECT_EQ(full_status("web").container_statuses[0].restart_count.value, 1);
    EXPECT_EQ(full_status("web").container_statuses[0].last_state.value.terminated->reason, "SupervisorLost");
}

TEST_F(a_pod, is_ended_by_its_deadline) {
    run(R"({"activeDeadlineSeconds": 1, "containers": [{"name": "c", "image": "busybox:1"}]})");
    ASSERT_TRUE(until([&] { return full_status("web").phase == "Failed"; }));
    EXPECT_EQ(full_status("web").reason, "DeadlineExceeded");
    EXPECT_EQ(full_status("web").message, "Pod was active on the node longer than the specified deadline");
    EXPECT_EQ(runtime.running(), 0);
}

TEST_F(a_pod, is_removed_without_a_trace) {
    run();
    ASSERT_TRUE(until([&] { return ready("web"); }));
    remove(pod_json("web", "u-1"));
    ASSERT_TRUE(until([&] { return node->pods().empty(); }));
    EXPECT_THAT(runtime.stop_timeouts, ElementsAre(3));
    EXPECT_TRUE(has_event("u-1", "Normal Killing: Stopping container c"));
    EXPECT_TRUE(runtime.sandboxes.empty());
    EXPECT_TRUE(runtime.containers.empty());
    EXPECT_TRUE(cgroups.empty());
    EXPECT_TRUE(base::list_dir(dir + "/state/pods").value().empty());
    EXPECT_TRUE(base::list_dir(dir + "/logs").value().empty());
}

TEST_F(a_pod, is_removed_in_the_middle_of_its_start) {
    for (const auto* op : {"run_pod_sandbox", "image_status", "create_container", "start_container"}) {
        SCOPED_TRACE(op);
        runtime.hold(op);
        boot();
        add(pod_json("web", "u-1"));
        synced();
        ASSERT_TRUE(until([&] { return runtime.holding(op); }));
        remove(pod_json("web", "u-1"));
        ASSERT_TRUE(until([&] { return node->pods().empty(); }));
        EXPECT_TRUE(runtime.sandboxes.empty());
        EXPECT_TRUE(runtime.containers.empty());
        EXPECT_TRUE(cgroups.empty());
        runtime.release(op);
        crash();
    }
}

TEST_F(a_pod, starts_again_when_it_comes_back_while_it_ends) {
    run();
    ASSERT_TRUE(until([&] { return ready("web"); }));
    runtime.hold("stop_container");
    remove(pod_json("web", "u-1"));
    ASSERT_TRUE(until([&] { return runtime.holding("stop_container"); }));
    EXPECT_EQ(status("web"), "Terminating");
    add(pod_json("web", "u-1"));
    settle();
    EXPECT_EQ(runtime.sandbox_requests.size(), 1u);
    runtime.release("stop_container");
    ASSERT_TRUE(until([&] { return runtime.sandbox_requests.size() == 2 && ready("web"); }));
    EXPECT_EQ(full_status("web").container_statuses[0].restart_count.value, 0);
}

TEST_F(a_pod, gives_way_to_its_successor_of_the_same_name) {
    const auto* spec = R"({"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "busybox:1",
                           "ports": [{"containerPort": 80, "hostPort": 8080}]}]})";
    run(spec);
    ASSERT_TRUE(until([&] { return ready("web"); }));
    remove(pod_json("web", "u-1", spec));
    add(pod_json("web", "u-2", spec));
    ASSERT_TRUE(until([&] { return runtime.sandbox_requests.size() == 2 && ready("web"); }));
    EXPECT_EQ(node->pods().at(0).uid, "u-2");
    EXPECT_EQ(runtime.sandboxes.size(), 1u);
}

TEST_F(a_pod, waits_for_a_port_that_an_ending_pod_still_holds) {
    const auto* spec = R"({"containers": [{"name": "c", "image": "busybox:1", "ports": [{"containerPort": 80, "hostPort": 8080}]}]})";
    run(spec);
    ASSERT_TRUE(until([&] { return ready("web"); }));
    add(pod_json("late", "u-3", spec));
    ASSERT_TRUE(until([&] { return full_status("late").phase == "Failed"; }));
    EXPECT_EQ(full_status("late").reason, "NodePorts");

    runtime.hold("stop_container");
    remove(pod_json("web", "u-1", spec));
    ASSERT_TRUE(until([&] { return runtime.holding("stop_container"); }));
    add(pod_json("next", "u-2", spec));
    settle();
    EXPECT_EQ(status("next"), "ContainerCreating");
    runtime.release("stop_container");
    EXPECT_TRUE(until([&] { return ready("next"); }));
}

TEST_F(a_pod, that_ignores_its_signal_gets_a_shorter_grace_on_request) {
    run();
    ASSERT_TRUE(until([&] { return ready("web"); }));
    runtime.hold("stop_container");
    const auto deleting = [](int grace) {
        return R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "ns", "uid": "u-1",
                   "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": )" +
               std::to_string(grace) + R"(}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}]}})";
    };
    update(deleting(60));
    ASSERT_TRUE(until([&] { return runtime.holding("stop_container"); }));
    EXPECT_EQ(runtime.count("stop_container"), 1);
    update(deleting(90));
    settle();
    EXPECT_EQ(runtime.count("stop_container"), 1) << "a grace period never grows";
    update(deleting(5));
    ASSERT_TRUE(until([&] { return runtime.count("stop_container") == 2 && runtime.holding("stop_container"); }));
    runtime.release("stop_container");
    ASSERT_TRUE(until([&] { return !runtime.stop_timeouts.empty(); }));
    EXPECT_LE(runtime.stop_timeouts.back(), 5);
}

TEST_F(a_pod, follows_a_new_image) {
    runtime.images["busybox:2"] = runtime.images["busybox:1"];
    run();
    ASSERT_TRUE(until([&] { return ready("web"); }));
    update(pod_json("web", "u-1", R"({"containers": [{"name": "c", "image": "busybox:2"}]})"));
    ASSERT_TRUE(until([&] { return runtime.created.size() == 2 && ready("web"); }));
    EXPECT_EQ(runtime.created[1].image().user_specified_image(), "busybox:2");
    EXPECT_TRUE(has_event("u-1", "Normal Killing: Container c definition changed, will be restarted"));
    EXPECT_EQ(runtime.sandbox_requests.size(), 1u);
}

TEST_F(a_pod, works_with_events_that_carry_only_a_name) {
    runtime.name_only_events = true;
    run();
    ASSERT_TRUE(until([&] { return ready("web"); }));
    runtime.exit("c", 1);
    EXPECT_TRUE(until([&] { return runtime.created.size() == 2 && ready("web"); }));
}

} // namespace
} // namespace gantry::core
