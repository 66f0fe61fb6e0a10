#include "core/pod/actions.hpp"

#include "core/pod/pod_fixture.hpp"

namespace gantry::core {
namespace {

using testing::pod_of;
using testing::pod_with;
using testing::world;
using start = pod_actions::start;

pod_actions of(const model::pod& pod, const world& w) { return compute_actions(pod.spec, w.view); }

TEST(actions, begin_with_a_sandbox) {
    const auto a = of(pod_with("Always", {"c"}), world());
    EXPECT_TRUE(a.create_sandbox);
    EXPECT_EQ(a.attempt, 0u);
    EXPECT_FALSE(a.kill_pod);
}

TEST(actions, start_containers_in_list_order) {
    const auto a = of(pod_with("Always", {"a", "b"}), world().sandbox());
    EXPECT_EQ(a.to_start, (std::vector<start>{{false, 0}, {false, 1}}));
    EXPECT_FALSE(a.create_sandbox);
}

TEST(actions, leave_what_runs_alone) {
    EXPECT_TRUE(of(pod_with("Always", {"a"}), world().sandbox().running("a")).idle());
}

TEST(actions, follow_the_restart_policy) {
    const auto starts = [](const char* policy, int code) {
        const auto a = of(pod_with(policy, {"a", "b"}), world().sandbox().running("a").exited("b", code));
        return a.to_start == std::vector<start>{{false, 1}};
    };
    EXPECT_TRUE(starts("Always", 0));
    EXPECT_TRUE(starts("Always", 1));
    EXPECT_FALSE(starts("OnFailure", 0));
    EXPECT_TRUE(starts("OnFailure", 1));
    EXPECT_FALSE(starts("Never", 1));
}

TEST(actions, let_a_containers_own_policy_win) {
    const auto pod = pod_of(R"({"restartPolicy": "Always", "containers": [
        {"name": "a", "image": "i:1", "restartPolicy": "Never"}, {"name": "b", "image": "i:1"}]})");
    EXPECT_TRUE(of(pod, world().sandbox().exited("a", 5).running("b")).idle());
}

TEST(actions, finish_a_pod_that_is_done) {
    EXPECT_TRUE(of(pod_with("Never", {"a", "b"}), world().sandbox().exited("a", 0).exited("b", 1)).finished());
    EXPECT_TRUE(of(pod_with("OnFailure", {"a"}), world().sandbox().exited("a", 0)).finished());
    EXPECT_FALSE(of(pod_with("Never", {"a", "b"}), world().sandbox().exited("a", 0).running("b")).finished());
}

TEST(actions, start_what_was_made_but_never_ran_whatever_the_policy) {
    EXPECT_EQ(of(pod_with("Never", {"a"}), world().sandbox().created("a")).to_start, (std::vector<start>{{false, 0}}));
}

TEST(actions, replace_a_container_whose_image_changed) {
    auto pod = pod_with("Never", {"a"});
    world w;
    w.sandbox().running("a");
    w.view.containers[0].hash = container_hash(pod.spec.containers[0]);
    EXPECT_TRUE(of(pod, w).idle());
    pod.spec.containers[0].image = "busybox:2";
    const auto a = of(pod, w);
    ASSERT_EQ(a.to_stop.size(), 1u);
    EXPECT_EQ(a.to_stop[0].message, "Container a definition changed, will be restarted");
    EXPECT_EQ(a.to_start, (std::vector<start>{{false, 0}}));
}

TEST(actions, rebuild_a_sandbox_that_is_gone) {
    const auto a = of(pod_with("Always", {"a"}), world().sandbox(false, 3).exited("a", 137));
    EXPECT_TRUE(a.create_sandbox);
    EXPECT_FALSE(a.kill_pod);
    EXPECT_EQ(a.attempt, 4u);
}

TEST(actions, kill_first_when_something_still_runs_in_a_dead_sandbox) {
    const auto a = of(pod_with("Always", {"a"}), world().sandbox(false).running("a"));
    EXPECT_TRUE(a.kill_pod);
    EXPECT_TRUE(a.create_sandbox);
}

TEST(actions, do_not_rebuild_the_sandbox_of_a_pod_that_is_done) {
    EXPECT_TRUE(of(pod_with("Never", {"a"}), world().sandbox(false).exited("a", 1)).finished());
}

TEST(actions, rebuild_the_sandbox_when_its_supervisor_was_lost) {
    const auto pod = pod_with("Always", {"a", "b"});
    const auto a = of(pod, world().sandbox().exited("a", 255, 0, "SupervisorLost").exited("b", 255, 0, "SupervisorLost"));
    EXPECT_TRUE(a.kill_pod);
    EXPECT_TRUE(a.create_sandbox);
    EXPECT_EQ(a.attempt, 1u);
    // What was lost in an earlier sandbox is history.
    EXPECT_TRUE(of(pod, world().sandbox(false).exited("a", 255, 0, "SupervisorLost").sandbox(true, 1).running("a", 1).running("b", 1))
                    .idle());
}

TEST(actions, run_init_containers_one_by_one) {
    const auto pod = pod_with("Always", {"c"}, {"i1", "i2"});
    EXPECT_EQ(of(pod, world().sandbox()).to_start, (std::vector<start>{{true, 0}}));
    EXPECT_TRUE(of(pod, world().sandbox().running("i1")).idle());
    EXPECT_EQ(of(pod, world().sandbox().exited("i1", 0)).to_start, (std::vector<start>{{true, 1}}));
    EXPECT_EQ(of(pod, world().sandbox().exited("i1", 0).exited("i2", 0)).to_start, (std::vector<start>{{false, 0}}));
}

TEST(actions, judge_init_progress_from_the_furthest_one) {
    // i1 may have been removed since it ended.
    const auto pod = pod_with("Always", {"c"}, {"i1", "i2"});
    EXPECT_EQ(of(pod, world().sandbox().exited("i2", 0)).to_start, (std::vector<start>{{false, 0}}));
    EXPECT_TRUE(of(pod, world().sandbox().running("c")).idle());
}

TEST(actions, retry_or_fail_on_a_failed_init_container) {
    EXPECT_EQ(of(pod_with("Always", {"c"}, {"i"}), world().sandbox().exited("i", 3)).to_start,
              (std::vector<start>{{true, 0}}));
    EXPECT_TRUE(of(pod_with("Never", {"c"}, {"i"}), world().sandbox().exited("i", 3)).finished());
}

TEST(actions, run_init_containers_again_in_a_new_sandbox) {
    const auto pod = pod_with("Always", {"c"}, {"i"});
    EXPECT_EQ(of(pod, world().sandbox(false).exited("i", 0).exited("c", 137).sandbox(true, 1)).to_start,
              (std::vector<start>{{true, 0}}));
}

class sidecar_actions : public ::testing::Test {
protected:
    const model::pod pod = pod_of(R"({"restartPolicy": "Never",
        "initContainers": [{"name": "s", "image": "i:1", "restartPolicy": "Always"}, {"name": "i", "image": "i:1"}],
        "containers": [{"name": "c", "image": "i:1"}]})");
};

TEST_F(sidecar_actions, go_on_as_soon_as_the_sidecar_runs) {
    EXPECT_EQ(of(pod, world().sandbox()).to_start, (std::vector<start>{{true, 0}}));
    EXPECT_EQ(of(pod, world().sandbox().running("s")).to_start, (std::vector<start>{{true, 1}}));
    EXPECT_EQ(of(pod, world().sandbox().running("s").exited("i", 0)).to_start, (std::vector<start>{{false, 0}}));
}

TEST_F(sidecar_actions, restart_it_whenever_it_ends) {
    EXPECT_EQ(of(pod, world().sandbox().exited("s", 0).running("i")).to_start, (std::vector<start>{{true, 0}}));
    EXPECT_EQ(of(pod, world().sandbox().exited("s", 1).exited("i", 0).running("c")).to_start,
              (std::vector<start>{{true, 0}}));
}

TEST_F(sidecar_actions, end_it_with_the_last_regular_container) {
    EXPECT_TRUE(of(pod, world().sandbox().running("s").exited("i", 0).exited("c", 0)).finished());
}

TEST(runtime_view, never_takes_a_container_back) {
    world w;
    w.sandbox().exited("a", 3).running("a");
    ASSERT_EQ(w.view.containers.size(), 1u);
    EXPECT_EQ(w.view.containers[0].phase, container_phase::exited);
    EXPECT_EQ(w.view.containers[0].exit_code, 3);
}

TEST(runtime_view, knows_newest_and_previous) {
    world w;
    w.sandbox().exited("a", 1, 0).exited("a", 2, 1).running("a", 2);
    EXPECT_EQ(w.view.newest("a")->attempt, 2u);
    EXPECT_EQ(w.view.previous("a")->exit_code, 2);
    EXPECT_EQ(w.view.previous("b"), nullptr);
}

} // namespace
} // namespace gantry::core
