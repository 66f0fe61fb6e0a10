// What survives the plugin's process, and what does not survive the supervisor.
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "tests/cri-native/one_pod.hpp"

namespace gantry::cri_native::testing {
namespace {

using ::testing::IsEmpty;

class recovery : public one_pod {
protected:
    void TearDown() override {
        EXPECT_TRUE(node_.remove_pod(pod_));
        EXPECT_THAT(node_.leftovers(), IsEmpty());
        EXPECT_EQ(node_.networks(), 0);
        EXPECT_THAT(node_.misbehaviour(), IsEmpty());
    }
};

TEST_F(recovery, finds_running_containers_untouched) {
    const auto id = node_.launch(pod_, node_.shell("c", "echo up; sleep 100000"));
    ASSERT_TRUE(id) << id.error().message;
    const auto waiting = node_.create(pod_, node_.shell("waiting", "echo started late"));
    ASSERT_TRUE(waiting);
    const auto before = node_.status(*id);
    const auto processes = node_.processes(*id);
    ASSERT_TRUE(node_.restart());
    const auto after = node_.status(*id);
    EXPECT_EQ(after.state(), cri::CONTAINER_RUNNING);
    EXPECT_EQ(after.created_at(), before.created_at());
    EXPECT_NEAR(static_cast<double>(after.started_at()), static_cast<double>(before.started_at()), 1e9);
    EXPECT_EQ(after.labels().at("container"), "c");
    EXPECT_EQ(node_.processes(*id), processes);
    EXPECT_EQ(node_.pod_status(pod_).state(), cri::SANDBOX_READY);
    EXPECT_EQ(node_.pod_status(pod_).network().ip(), "127.0.0.1");
    EXPECT_EQ(node_.exec(*id, {"echo", "still here"})->stdout(), "still here\n");
    EXPECT_EQ(node_.status(*waiting).state(), cri::CONTAINER_CREATED);
    ASSERT_TRUE(node_.start_container(*waiting));
    ASSERT_TRUE(node_.wait_exit(*waiting));
    EXPECT_EQ(node_.log(*waiting), "started late\n");
    EXPECT_EQ(*node_.run_pod(node_.pod("web")), pod_);
}

TEST_F(recovery, learns_of_exits_it_did_not_see) {
    auto config = node_.shell("c", "echo up; until [ -e /go/now ]; do usleep 2000; done; exit 42");
    auto* mount = config.add_mounts();
    mount->set_host_path(node_.dir() + "/go");
    mount->set_container_path("/go");
    const auto id = node_.launch(pod_, config);
    ASSERT_TRUE(id) << id.error().message;
    node_.stop();
    ASSERT_TRUE(base::write_file_atomic(node_.dir() + "/go/now", ""));
    ASSERT_TRUE(eventually([&] { return node_.processes(*id).empty(); }));
    ASSERT_TRUE(node_.start());
    const auto status = node_.status(*id);
    EXPECT_EQ(status.state(), cri::CONTAINER_EXITED);
    EXPECT_EQ(status.exit_code(), 42);
    EXPECT_EQ(status.reason(), "Error");
}

TEST_F(recovery, ends_containers_whose_supervisor_died) {
    const auto id = node_.launch(pod_, node_.shell("c", "sleep 100000 & sleep 100000"));
    ASSERT_TRUE(id) << id.error().message;
    const auto done = node_.launch(pod_, node_.shell("done", "exit 3"));
    ASSERT_TRUE(done);
    ASSERT_TRUE(node_.wait_exit(*done));
    const auto supervisors = node_.supervisors();
    ASSERT_FALSE(supervisors.empty());
    for (const int pid : supervisors) ::kill(pid, SIGKILL);
    ASSERT_TRUE(node_.wait_exit(*id));
    const auto status = node_.status(*id);
    EXPECT_EQ(status.exit_code(), 255);
    EXPECT_EQ(status.reason(), "SupervisorLost");
    EXPECT_EQ(node_.status(*done).exit_code(), 3);
    EXPECT_EQ(node_.pod_status(pod_).state(), cri::SANDBOX_NOTREADY);
    EXPECT_THAT(node_.processes(*id), IsEmpty());
    EXPECT_FALSE(node_.create(pod_, node_.shell("late", "true")));
}

TEST_F(recovery, a_stop_that_comes_at_once_does_not_hide_that_the_supervisor_died) {
    std::vector<std::string> ids;
    for (const char* name : {"a", "b", "c"}) {
        const auto id = node_.launch(pod_, node_.shell(name, "sleep 100000"));
        ASSERT_TRUE(id) << id.error().message;
        ids.push_back(*id);
    }
    for (const int pid : node_.supervisors()) ::kill(pid, SIGKILL);
    std::vector<node::op> stops;
    for (const auto& id : ids) {
        cri::StopContainerRequest request;
        request.set_container_id(id);
        stops.push_back(node_.begin(node_.runtime().stop_container, request.SerializeAsString()));
    }
    for (const auto stop : stops) EXPECT_TRUE(node_.wait(stop));
    for (const auto& id : ids) {
        EXPECT_EQ(node_.status(id).exit_code(), 255);
        EXPECT_EQ(node_.status(id).reason(), "SupervisorLost");
    }
}

TEST_F(recovery, ends_containers_whose_supervisor_died_while_it_was_away) {
    const auto id = node_.launch(pod_, node_.shell("c", "sleep 100000 & sleep 100000"));
    ASSERT_TRUE(id) << id.error().message;
    const auto supervisors = node_.supervisors();
    node_.stop();
    for (const int pid : supervisors) ::kill(pid, SIGKILL);
    ASSERT_TRUE(node_.start());
    const auto status = node_.status(*id);
    EXPECT_EQ(status.state(), cri::CONTAINER_EXITED);
    EXPECT_EQ(status.exit_code(), 255);
    EXPECT_EQ(status.reason(), "SupervisorLost");
    EXPECT_THAT(node_.processes(*id), IsEmpty());
    EXPECT_EQ(node_.pod_status(pod_).state(), cri::SANDBOX_NOTREADY);
    ASSERT_TRUE(node_.restart()); // and still knows it
    EXPECT_EQ(node_.status(*id).reason(), "SupervisorLost");
}

TEST_F(recovery, remembers_what_could_not_start) {
    const auto id = node_.create(pod_, node_.container("c", {"/no/such/program"}));
    ASSERT_TRUE(id);
    ASSERT_FALSE(node_.start_container(*id));
    ASSERT_TRUE(node_.restart());
    EXPECT_EQ(node_.status(*id).reason(), "StartError");
    EXPECT_EQ(node_.status(*id).exit_code(), 128);
}

TEST_F(recovery, keeps_stopped_pods_until_they_are_removed) {
    const auto id = node_.launch(pod_, node_.shell("c", "exit 9"));
    ASSERT_TRUE(id);
    ASSERT_TRUE(node_.wait_exit(*id));
    ASSERT_TRUE(node_.stop_pod(pod_));
    ASSERT_TRUE(node_.restart());
    EXPECT_EQ(node_.pod_status(pod_).state(), cri::SANDBOX_NOTREADY);
    EXPECT_EQ(node_.status(*id).exit_code(), 9);
}

} // namespace
} // namespace gantry::cri_native::testing
