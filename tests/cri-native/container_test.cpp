// Containers: started, watched, limited, ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/cri-native/one_pod.hpp"

namespace gantry::cri_native::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class containers : public one_pod {
protected:
    void TearDown() override {
        EXPECT_TRUE(node_.remove_pod(pod_));
        EXPECT_THAT(node_.leftovers(), IsEmpty());
        EXPECT_THAT(node_.misbehaviour(), IsEmpty());
    }
    /// Runs a container to its end.
    cri::ContainerStatus run(const cri::ContainerConfig& config) {
        const auto id = node_.launch(pod_, config);
        EXPECT_TRUE(id) << (id ? "" : id.error().message);
        if (!id) return {};
        EXPECT_TRUE(node_.wait_exit(*id));
        return node_.status(*id);
    }
    std::string cgroup_file(const std::string& id, const std::string& v1, const std::string& v2) {
        for (const auto& dir : node_.cgroups(id))
            for (const auto& name : {v1, v2})
                if (const auto text = read_text(dir + "/" + name); !text.empty()) return text;
        return "(none)";
    }
};

TEST_F(containers, report_their_output_and_exit_code) {
    const auto ended = run(node_.shell("c", "echo out; echo err >&2; exit 3"));
    EXPECT_EQ(ended.exit_code(), 3);
    EXPECT_EQ(ended.reason(), "Error");
    EXPECT_LE(ended.created_at(), ended.started_at());
    EXPECT_LE(ended.started_at(), ended.finished_at());
    EXPECT_EQ(node_.log(ended.id(), "stdout"), "out\n");
    EXPECT_EQ(node_.log(ended.id(), "stderr"), "err\n");
    EXPECT_EQ(run(node_.shell("d", "true")).reason(), "Completed");
}

TEST_F(containers, wait_for_their_start) {
    const auto id = node_.create(pod_, node_.shell("c", "echo ran"));
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(node_.status(*id).state(), cri::CONTAINER_CREATED);
    EXPECT_EQ(node_.log(*id), "");
    EXPECT_EQ(*node_.create(pod_, node_.shell("c", "echo ran")), *id); // may be repeated
    const auto clash = node_.create(pod_, node_.shell("c", "echo other"));
    ASSERT_FALSE(clash);
    EXPECT_EQ(clash.error().code, code::exists);
    ASSERT_TRUE(node_.start_container(*id));
    ASSERT_TRUE(node_.wait_exit(*id));
    EXPECT_EQ(node_.log(*id), "ran\n");
    EXPECT_FALSE(node_.start_container(*id));
}

TEST_F(containers, run_what_image_and_request_say) {
    auto config = node_.container("c", {});
    for (const auto* word : {"sh", "-c", "echo $IMAGE $MINE $HOSTNAME; pwd"}) config.add_args(word);
    config.set_working_dir("/made/for/it");
    auto* variable = config.add_envs();
    variable->set_key("MINE");
    variable->set_value("\xff\xfe");
    const auto ended = run(config);
    EXPECT_EQ(node_.log(ended.id()), "yes \xff\xfe web\n/made/for/it\n");
}

TEST_F(containers, name_what_cannot_be_started) {
    const auto id = node_.create(pod_, node_.container("c", {"/no/such/program"}));
    ASSERT_TRUE(id) << id.error().message;
    const auto started = node_.start_container(*id);
    ASSERT_FALSE(started);
    EXPECT_THAT(started.error().message, HasSubstr("/no/such/program"));
    const auto status = node_.status(*id);
    EXPECT_EQ(status.state(), cri::CONTAINER_EXITED);
    EXPECT_EQ(status.reason(), "StartError");
    EXPECT_EQ(status.exit_code(), 128);
    EXPECT_THAT(status.message(), HasSubstr("/no/such/program"));
}

TEST_F(containers, say_how_large_an_environment_may_be) {
    auto config = node_.shell("c", "true");
    for (int i = 0; i < 3000; ++i) {
        auto* variable = config.add_envs();
        variable->set_key("SERVICE_" + std::to_string(i));
        variable->set_value(std::string(1000, 'x'));
    }
    const auto id = node_.create(pod_, config);
    ASSERT_TRUE(id) << id.error().message;
    const auto started = node_.start_container(*id);
    ASSERT_FALSE(started);
    EXPECT_THAT(started.error().message, HasSubstr("enableServiceLinks"));
    EXPECT_EQ(node_.status(*id).reason(), "StartError");
}

TEST_F(containers, fail_for_images_that_are_not_there) {
    auto config = node_.shell("c", "true");
    config.mutable_image()->set_image("docker.io/library/nosuch:1");
    const auto id = node_.create(pod_, config);
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().code, code::not_found);
    EXPECT_THAT(node_.cgroups(""), ::testing::Each(::testing::Not(HasSubstr("/c"))));
}

TEST_F(containers, end_at_their_signal_or_are_killed_after_the_grace_period) {
    const auto polite = node_.launch(
        pod_, node_.shell("polite", "trap 'echo bye; exit 7' TERM; echo up; while :; do usleep 5000; done"));
    ASSERT_TRUE(polite) << polite.error().message;
    ASSERT_TRUE(eventually([&] { return node_.log(*polite) == "up\n"; }));
    ASSERT_TRUE(node_.stop_container(*polite, 20));
    EXPECT_EQ(node_.status(*polite).exit_code(), 7);
    EXPECT_EQ(node_.log(*polite), "up\nbye\n");

    const auto deaf = node_.launch(pod_, node_.shell("deaf", "trap '' TERM; echo up; while :; do usleep 5000; done"));
    ASSERT_TRUE(deaf);
    ASSERT_TRUE(eventually([&] { return node_.log(*deaf) == "up\n"; }));
    const auto before = std::chrono::steady_clock::now();
    ASSERT_TRUE(node_.stop_container(*deaf, 1));
    EXPECT_GE(std::chrono::steady_clock::now() - before, 1s);
    EXPECT_EQ(node_.status(*deaf).exit_code(), 137);
    EXPECT_EQ(node_.status(*deaf).reason(), "Error");
    EXPECT_THAT(node_.processes(*deaf), IsEmpty());
}

TEST_F(containers, can_be_stopped_impatiently_while_a_patient_stop_waits) {
    const auto id = node_.launch(pod_, node_.shell("deaf", "trap '' TERM; echo up; while :; do usleep 5000; done"));
    ASSERT_TRUE(id);
    ASSERT_TRUE(eventually([&] { return node_.log(*id) == "up\n"; }));
    cri::StopContainerRequest patient;
    patient.set_container_id(*id);
    patient.set_timeout(1000);
    const auto op = node_.begin(node_.runtime().stop_container, patient.SerializeAsString());
    ASSERT_TRUE(node_.stop_container(*id, 0));
    EXPECT_TRUE(node_.wait(op));
}

TEST_F(containers, that_outgrow_their_memory_are_oom_killed) {
    auto config = node_.shell("hungry", "tail /dev/zero");
    config.mutable_linux()->mutable_resources()->set_memory_limit_in_bytes(16 << 20);
    const auto ended = run(config);
    EXPECT_EQ(ended.exit_code(), 137);
    EXPECT_EQ(ended.reason(), "OOMKilled");
}

TEST_F(containers, killed_by_us_are_not_oom_killed_even_if_a_child_was) {
    auto config = node_.shell("parent", "tail /dev/zero; echo child gone; sleep 1000");
    config.mutable_linux()->mutable_resources()->set_memory_limit_in_bytes(16 << 20);
    const auto id = node_.launch(pod_, config);
    ASSERT_TRUE(id) << id.error().message;
    ASSERT_TRUE(eventually([&] { return node_.log(*id, "stdout") == "child gone\n"; }));
    auto graceful = node_.stop_container(*id, 1);
    ASSERT_TRUE(graceful);
    EXPECT_EQ(node_.status(*id).state(), cri::CONTAINER_EXITED);
}

TEST_F(containers, get_the_limits_they_ask_for_and_new_ones_while_running) {
    auto config = node_.shell("c", "sleep 1000");
    auto* resources = config.mutable_linux()->mutable_resources();
    resources->set_memory_limit_in_bytes(64 << 20);
    resources->set_cpu_quota(50000);
    resources->set_cpu_period(100000);
    const auto id = node_.launch(pod_, config);
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(cgroup_file(*id, "memory.limit_in_bytes", "memory.max"), std::to_string(64 << 20) + "\n");
    EXPECT_THAT(cgroup_file(*id, "cpu.cfs_quota_us", "cpu.max"), HasSubstr("50000"));
    cri::UpdateContainerResourcesRequest update;
    update.set_container_id(*id);
    update.mutable_linux()->set_memory_limit_in_bytes(128 << 20);
    ASSERT_TRUE(node_.call<cri::UpdateContainerResourcesResponse>(node_.runtime().update_container_resources, update));
    EXPECT_EQ(cgroup_file(*id, "memory.limit_in_bytes", "memory.max"), std::to_string(128 << 20) + "\n");
    const auto status = node_.status(*id);
    EXPECT_EQ(status.resources().linux().memory_limit_in_bytes(), 128 << 20);
    EXPECT_EQ(status.resources().linux().cpu_quota(), 50000);
}

TEST_F(containers, are_measured) {
    const auto id = node_.launch(
        pod_,
        node_.shell(
            "c", "dd if=/dev/zero of=/file bs=1M count=3 2>/dev/null; echo done; i=0; while :; do i=$((i+1)); done"));
    ASSERT_TRUE(id) << id.error().message;
    ASSERT_TRUE(eventually([&] { return node_.log(*id) == "done\n"; }));
    cri::ContainerStatsRequest request;
    request.set_container_id(*id);
    const auto stats_of = [&] {
        return node_.call<cri::ContainerStatsResponse>(node_.runtime().container_stats, request)->stats();
    };
    ASSERT_TRUE(eventually([&] { return stats_of().cpu().usage_core_nano_seconds().value() > 50'000'000; }));
    const auto stats = stats_of();
    EXPECT_GT(stats.memory().usage_bytes().value(), 0u);
    EXPECT_GT(stats.memory().working_set_bytes().value(), 0u);
    EXPECT_GE(stats.writable_layer().used_bytes().value(), 3u << 20);
    EXPECT_EQ(stats.attributes().metadata().name(), "c");
    const auto list = node_.call<cri::ListContainerStatsResponse>(node_.runtime().list_container_stats,
                                                                  cri::ListContainerStatsRequest{});
    ASSERT_TRUE(list);
    EXPECT_EQ(list->stats_size(), 1);
}

TEST_F(containers, continue_their_log_in_a_new_file) {
    const auto id = node_.launch(pod_, node_.shell("c", "i=0; while :; do echo $i; i=$((i+1)); usleep 2000; done"));
    ASSERT_TRUE(id) << id.error().message;
    const std::string path = node_.status(*id).log_path();
    ASSERT_TRUE(eventually([&] { return !read_text(path).empty(); }));
    ASSERT_EQ(std::rename(path.c_str(), (path + ".1").c_str()), 0);
    cri::ReopenContainerLogRequest request;
    request.set_container_id(*id);
    ASSERT_TRUE(node_.call<cri::ReopenContainerLogResponse>(node_.runtime().reopen_container_log, request));
    ASSERT_TRUE(eventually([&] { return !read_text(path).empty(); }));
    ASSERT_TRUE(node_.stop_container(*id, 0));
    int expected = 0;
    std::istringstream lines(read_text(path + ".1") + read_text(path));
    for (std::string line; std::getline(lines, line); ++expected)
        ASSERT_EQ(line.substr(line.rfind(' ') + 1), std::to_string(expected)) << "a line was lost or came twice";
    EXPECT_FALSE(node_.call<cri::ReopenContainerLogResponse>(node_.runtime().reopen_container_log, request));
}

TEST_F(containers, are_removed_while_running) {
    const auto id = node_.launch(pod_, node_.shell("c", "sleep 1000"));
    ASSERT_TRUE(id) << id.error().message;
    ASSERT_TRUE(node_.remove_container(*id));
    EXPECT_TRUE(node_.status(*id).id().empty());
    EXPECT_THAT(node_.cgroups(*id), IsEmpty());
}

TEST_F(containers, are_listed_by_pod_state_and_label) {
    const auto a = node_.launch(pod_, node_.shell("a", "sleep 1000"));
    const auto b = node_.create(pod_, node_.shell("b", "true"));
    ASSERT_TRUE(a && b);
    const auto list = [&](auto change) {
        cri::ListContainersRequest request;
        change(*request.mutable_filter());
        std::set<std::string> names;
        const auto response = node_.call<cri::ListContainersResponse>(node_.runtime().list_containers, request);
        for (const auto& one : response->containers()) names.insert(one.metadata().name());
        return names;
    };
    EXPECT_THAT(list([](auto&) {}), ElementsAre("a", "b"));
    EXPECT_THAT(list([&](auto& filter) { filter.set_pod_sandbox_id(pod_); }), ElementsAre("a", "b"));
    EXPECT_THAT(list([](auto& filter) { filter.mutable_state()->set_state(cri::CONTAINER_RUNNING); }),
                ElementsAre("a"));
    EXPECT_THAT(list([](auto& filter) { (*filter.mutable_label_selector())["container"] = "b"; }), ElementsAre("b"));
    EXPECT_THAT(list([](auto& filter) { filter.set_pod_sandbox_id("0"); }), IsEmpty());
}

TEST_F(containers, tell_what_happens_to_them) {
    const auto stream = node_.begin(node_.runtime().get_container_events, cri::GetEventsRequest{}.SerializeAsString());
    const auto ended = run(node_.shell("c", "exit 4"));
    ASSERT_TRUE(node_.remove_container(ended.id()));
    std::vector<cri::ContainerEventType> seen;
    while (seen.empty() || seen.back() != cri::CONTAINER_DELETED_EVENT) {
        std::string bytes;
        ASSERT_TRUE(node_.next_item(stream, bytes));
        cri::ContainerEventResponse event;
        ASSERT_TRUE(event.ParseFromString(bytes));
        if (event.container_id() != ended.id()) continue;
        seen.push_back(event.container_event_type());
        EXPECT_EQ(event.pod_sandbox_status().id(), pod_);
        if (event.container_event_type() == cri::CONTAINER_STOPPED_EVENT) {
            EXPECT_EQ(event.containers_statuses(0).exit_code(), 4);
        }
    }
    EXPECT_THAT(seen, ::testing::IsSupersetOf(
                          {cri::CONTAINER_CREATED_EVENT, cri::CONTAINER_STARTED_EVENT, cri::CONTAINER_STOPPED_EVENT}));
    node_.cancel(stream);
    const auto end = node_.wait(stream);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, code::cancelled);
}

TEST_F(containers, keep_their_image_from_being_removed) {
    const auto id = node_.create(pod_, node_.shell("c", "true"));
    ASSERT_TRUE(id);
    cri::RemoveImageRequest request;
    request.mutable_image()->set_image(node_.status(*id).image_id());
    const auto removed = node_.call<cri::RemoveImageResponse>(node_.images().remove_image, request);
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().code, code::busy);
    ASSERT_TRUE(node_.remove_container(*id));
    EXPECT_TRUE(node_.call<cri::RemoveImageResponse>(node_.images().remove_image, request));
    const auto status = node_.call<cri::ImageStatusResponse>(node_.images().image_status, [&] {
        cri::ImageStatusRequest question;
        *question.mutable_image() = request.image();
        return question;
    }());
    ASSERT_TRUE(status);
    EXPECT_FALSE(status->has_image());
}

} // namespace
} // namespace gantry::cri_native::testing
