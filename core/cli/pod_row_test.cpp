#include "core/cli/pod_row.hpp"

#include <gtest/gtest.h>

namespace gantry::core::cli {
namespace {

base::json::value pod(std::string_view text) {
    auto parsed = base::parse_json(text, "test");
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
    return parsed ? *parsed : base::json::value{};
}

TEST(pod_row, shows_ready_count_restarts_and_ip) {
    const auto row = pod_row(pod(R"({"metadata":{"namespace":"default","name":"web"},
        "spec":{"containers":[{},{}]},
        "status":{"phase":"Running","podIP":"10.88.0.2","startTime":"2001-09-09T01:46:40Z","containerStatuses":[
          {"ready":true,"restartCount":2,"state":{"running":{}}},{"ready":false,"restartCount":1,"state":{"running":{}}}]}})"),
                             std::chrono::system_clock::from_time_t(1000000010));
    EXPECT_EQ(row, (std::vector<std::string>{"default", "web", "1/2", "Running", "3", "10s", "10.88.0.2"}));
}

TEST(pod_status_word, prefers_what_a_container_waits_for_over_the_phase) {
    EXPECT_EQ(pod_status_word(pod(R"({"status":{"phase":"Running","containerStatuses":[
        {"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}})")), "CrashLoopBackOff");
}

TEST(pod_status_word, names_how_a_container_ended) {
    EXPECT_EQ(pod_status_word(pod(R"({"status":{"phase":"Failed","containerStatuses":[
        {"state":{"terminated":{"reason":"OOMKilled","exitCode":137}}}]}})")), "OOMKilled");
    EXPECT_EQ(pod_status_word(pod(R"({"status":{"phase":"Failed","containerStatuses":[
        {"state":{"terminated":{"exitCode":3}}}]}})")), "ExitCode:3");
}

TEST(pod_status_word, stays_running_when_only_some_containers_completed) {
    EXPECT_EQ(pod_status_word(pod(R"({"status":{"phase":"Running","containerStatuses":[
        {"state":{"terminated":{"reason":"Completed","exitCode":0}}},{"state":{"running":{}}}]}})")), "Running");
}

TEST(pod_status_word, counts_init_containers) {
    EXPECT_EQ(pod_status_word(pod(R"({"spec":{"initContainers":[{},{}]},"status":{"phase":"Pending","initContainerStatuses":[
        {"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},{"state":{"running":{}}}]}})")), "Init:1/2");
    EXPECT_EQ(pod_status_word(pod(R"({"spec":{"initContainers":[{}]},"status":{"phase":"Pending","initContainerStatuses":[
        {"state":{"waiting":{"reason":"ImagePullBackOff"}}}]}})")), "Init:ImagePullBackOff");
}

TEST(pod_status_word, says_terminating_once_deletion_began) {
    EXPECT_EQ(pod_status_word(pod(R"({"metadata":{"deletionTimestamp":"2001-09-09T01:46:40Z"},"status":{"phase":"Running"}})")),
              "Terminating");
}

TEST(pod_status_word, shows_the_reason_of_a_rejected_pod) {
    EXPECT_EQ(pod_status_word(pod(R"({"status":{"phase":"Failed","reason":"OutOfcpu"}})")), "OutOfcpu");
}

} // namespace
} // namespace gantry::core::cli
