// What happens at the edges of a node's life: restart, orphans, sources and runtimes that come and go.
#include <gmock/gmock.h>

#include "base/files.hpp"
#include "core/kernel/node_fixture.hpp"

namespace gantry::core {
namespace {

using testing::node_test;
using ::testing::HasSubstr;

class a_node : public node_test {
protected:
    void run_pods(int n) {
        boot();
        for (int i = 0; i < n; ++i) add(pod_json("p" + std::to_string(i), "u-" + std::to_string(i)));
        synced();
        ASSERT_TRUE(until([&] { return runtime.running() == n; }));
        settle();
        for (int i = 0; i < n; ++i) ASSERT_TRUE(ready("p" + std::to_string(i))) << i;
    }
};

TEST_F(a_node, adopts_what_runs_after_a_restart) {
    run_pods(3);
    runtime.exit("c", 1); // of one of them
    ASSERT_TRUE(until([&] { return runtime.running() == 3; }));
    settle();
    std::map<std::string, std::string> before;
    for (int i = 0; i < 3; ++i) before["p" + std::to_string(i)] = *node->pod_json("ns", "p" + std::to_string(i));
    const int creates = runtime.count("create_container"), starts = runtime.count("start_container");
    const int stops = runtime.count("stop_container"), sandboxes = runtime.count("run_pod_sandbox");
    crash();
    EXPECT_EQ(runtime.running(), 3) << "a restart touches no container";

    boot();
    for (int i = 0; i < 3; ++i) add(pod_json("p" + std::to_string(i), "u-" + std::to_string(i)));
    synced();
    ASSERT_TRUE(until([&] { return ready("p0") && ready("p1") && ready("p2"); }));
    settle();
    for (int i = 0; i < 3; ++i) {
        const auto name = "p" + std::to_string(i);
        EXPECT_THAT(before[name], HasSubstr(full_status(name).container_statuses[0].state.value.running->started_at));
        EXPECT_THAT(before[name], HasSubstr("\"restartCount\":" +
                                            std::to_string(full_status(name).container_statuses[0].restart_count.value)));
        EXPECT_THAT(before[name], HasSubstr("\"startTime\":\"" + full_status(name).start_time));
    }
    EXPECT_EQ(runtime.count("create_container"), creates);
    EXPECT_EQ(runtime.count("start_container"), starts);
    EXPECT_EQ(runtime.count("stop_container"), stops);
    EXPECT_EQ(runtime.count("run_pod_sandbox"), sandboxes);
}

TEST_F(a_node, goes_on_where_a_restart_interrupted_it) {
    runtime.hold("start_container");
    boot();
    add(pod_json("web", "u-1"));
    synced();
    ASSERT_TRUE(until([&] { return runtime.holding("start_container"); }));
    crash();
    runtime.release("start_container");
    boot();
    add(pod_json("web", "u-1"));
    synced();
    ASSERT_TRUE(until([&] { return ready("web"); }));
    EXPECT_EQ(runtime.sandboxes.size(), 1u);
    EXPECT_EQ(runtime.containers.size(), 1u);
    EXPECT_EQ(full_status("web").container_statuses[0].restart_count.value, 0);
}

TEST_F(a_node, remembers_back_off_across_a_restart) {
    options.restart_backoff = {.base = std::chrono::minutes(1), .limit = std::chrono::minutes(5), .reset = std::chrono::minutes(10)};
    run_pods(1);
    runtime.exit("c", 1);
    ASSERT_TRUE(until([&] { return runtime.created.size() == 2 && runtime.running() == 1; }));
    runtime.exit("c", 1);
    ASSERT_TRUE(until([&] { return status("p0") == "CrashLoopBackOff"; }));
    settle();
    crash();
    boot();
    add(pod_json("p0", "u-0"));
    synced();
    ASSERT_TRUE(until([&] { return status("p0") == "CrashLoopBackOff"; }));
    EXPECT_EQ(full_status("p0").container_statuses[0].restart_count.value, 1);
    EXPECT_EQ(runtime.created.size(), 2u);
}

TEST_F(a_node, does_not_run_a_finished_pod_again) {
    const auto* spec = R"({"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1"}]})";
    boot();
    add(pod_json("job", "u-1", spec));
    synced();
    ASSERT_TRUE(until([&] { return ready("job"); }));
    runtime.exit("c", 3);
    ASSERT_TRUE(until([&] { return full_status("job").phase == "Failed" && cgroups.empty(); }));
    settle();
    crash();
    boot();
    add(pod_json("job", "u-1", spec));
    synced();
    ASSERT_TRUE(until([&] { return full_status("job").phase == "Failed"; }));
    settle();
    EXPECT_EQ(runtime.created.size(), 1u);
    EXPECT_EQ(full_status("job").container_statuses[0].state.value.terminated->exit_code.value, 3);
    remove(pod_json("job", "u-1", spec));
    ASSERT_TRUE(until([&] { return node->pods().empty(); }));
    EXPECT_TRUE(runtime.sandboxes.empty());
}

TEST_F(a_node, kills_nothing_before_its_sources_have_told_everything) {
    run_pods(2);
    crash();
    cgroups.insert("u-stray");
    boot();
    settle();
    EXPECT_EQ(runtime.running(), 2);
    EXPECT_EQ(cgroups.size(), 3u);
    EXPECT_EQ(runtime.count("stop_container"), 0);
}

TEST_F(a_node, removes_orphans_once_its_sources_have_told_everything) {
    run_pods(2);
    crash();
    cgroups.insert("u-stray");
    boot();
    add(pod_json("p1", "u-1"));
    synced();
    ASSERT_TRUE(until([&] { return runtime.sandboxes.size() == 1 && cgroups == std::set<std::string>{"u-1"}; }));
    EXPECT_TRUE(ready("p1"));
    ASSERT_TRUE(until([&] { return base::list_dir(dir + "/state/pods").value() == std::vector<std::string>{"u-1"}; }));
    EXPECT_TRUE(until([&] { return base::list_dir(dir + "/logs").value() == std::vector<std::string>{"ns_p1_u-1"}; }));
}

TEST_F(a_node, keeps_pods_while_a_source_is_away_and_drops_what_it_no_longer_names) {
    run_pods(2);
    source.end_stream("watch");
    settle();
    ASSERT_TRUE(until([&] { return source.streaming("watch"); }));
    EXPECT_EQ(runtime.running(), 2);
    add(pod_json("p0", "u-0"));
    settle();
    EXPECT_EQ(runtime.running(), 2);
    synced();
    ASSERT_TRUE(until([&] { return node->pods().size() == 1; }));
    EXPECT_TRUE(ready("p0"));
    EXPECT_EQ(node->health().sources.at(0).error, "");
}

TEST_F(a_node, lists_again_when_the_event_stream_was_lost) {
    run_pods(1);
    runtime.send_events = false;
    runtime.exit("c", 1); // nobody hears it
    runtime.end_stream("get_container_events");
    ASSERT_TRUE(until([&] { return runtime.created.size() == 2; }));
    EXPECT_TRUE(until([&] { return ready("p0"); }));
}

TEST_F(a_node, finds_by_audit_what_no_event_told) {
    options.audit_period = std::chrono::milliseconds(50);
    run_pods(1);
    runtime.send_events = false;
    runtime.exit("c", 1);
    ASSERT_TRUE(until([&] { return runtime.created.size() == 2; }));
    EXPECT_TRUE(until([&] { return ready("p0"); }));
}

TEST_F(a_node, lets_the_holder_of_a_name_keep_it) {
    run_pods(1);
    add(pod_json("p0", "u-a"));
    ASSERT_TRUE(until([&] { return !events("u-a").empty(); }));
    EXPECT_EQ(events("u-a")[0], "Warning FailedValidation: Error validating pod p0_ns(u-a) from files due to duplicate pod "
                                "name \"p0\", ignoring; u-0 keeps the name");
    EXPECT_EQ(node->pods().size(), 1u);
    EXPECT_EQ(node->pods()[0].uid, "u-0");
    remove(pod_json("p0", "u-0"));
    EXPECT_TRUE(until([&] { return ready("p0") && node->pods()[0].uid == "u-a"; }));
}

TEST_F(a_node, waits_for_a_runtime_that_is_away) {
    runtime.fail("list_pod_sandbox", {.code = code::unavailable, .message = "no such socket"}, 2);
    boot();
    add(pod_json("web", "u-1"));
    synced();
    settle();
    EXPECT_EQ(runtime.count("run_pod_sandbox"), 0);
    const auto explained = node->explain("ns", "web");
    ASSERT_TRUE(explained);
    EXPECT_THAT(explained->waiting_for, HasSubstr("runtime native"));
    EXPECT_TRUE(until([&] { return ready("web"); }));
}

TEST_F(a_node, keeps_a_record_of_input_it_refuses) {
    boot();
    add(R"({"metadata": {"name": "bad", "uid": "u-1"}, "spec": {"containers": []}})");
    source.send("watch", R"({"type": "FAULT", "object": "/m/x.yaml", "message": "not YAML"})");
    synced();
    settle();
    const auto faults = node->health().sources.at(0).faults;
    ASSERT_EQ(faults.size(), 2u);
    EXPECT_EQ(faults[0], "/m/x.yaml: not YAML");
    EXPECT_THAT(faults[1], HasSubstr("spec.containers: Required value"));
    EXPECT_TRUE(node->pods().empty());
}

TEST_F(a_node, runs_a_hundred_pods_at_once) {
    run_pods(100);
    EXPECT_EQ(runtime.running(), 100);
    for (int i = 0; i < 100; ++i) remove(pod_json("p" + std::to_string(i), "u-" + std::to_string(i)));
    ASSERT_TRUE(until([&] { return node->pods().empty(); }));
    EXPECT_TRUE(runtime.sandboxes.empty());
    EXPECT_TRUE(cgroups.empty());
}

} // namespace
} // namespace gantry::core
