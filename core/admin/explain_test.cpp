#include "core/admin/explain.hpp"

#include <gtest/gtest.h>

namespace gantry::core::admin {
namespace {

const wall_time noon = std::chrono::sys_days(std::chrono::year(2026) / 1 / 2) + std::chrono::hours(12);

pod_explanation waiting_pod() {
    pod_explanation pod;
    pod.summary.namespace_ = "default";
    pod.summary.name = "web";
    pod.summary.uid = "u1";
    pod.summary.status = "ImagePullBackOff";
    pod.state = "sync";
    return pod;
}

TEST(explain_answer, first_says_what_the_pod_waits_for) {
    auto pod = waiting_pod();
    pod.waiting_for = "image nginx:1: no such image";
    pod.retry_at = noon + std::chrono::milliseconds(9100);
    const auto answer = explain_answer(pod, {}, noon);
    EXPECT_EQ(answer.at("summary").as_string(), "default/web: ImagePullBackOff, waiting for image nginx:1: no such image");
    EXPECT_EQ(answer.at("next").as_string(), "retry in 10s");
}

TEST(explain_answer, leaves_next_out_when_an_event_will_wake_the_pod) {
    EXPECT_FALSE(explain_answer(waiting_pod(), {}, noon).contains("next"));
}

TEST(explain_answer, lists_steps_with_their_marks_and_outcomes) {
    op_step step;
    step.plugin = "net";
    step.op = "add";
    step.started = noon;
    step.duration = std::chrono::microseconds(1500);
    step.open = false;
    step.code = code::resource;
    step.message = "no address left in 10.88.0.0/30";
    step.steps = {{"lease", std::chrono::milliseconds(1)}};
    const auto answer = explain_answer(waiting_pod(), {step}, noon);
    const auto& rows = answer.at("steps").as_array();
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].at("took").as_string(), "1.50ms");
    EXPECT_EQ(rows[0].at("outcome").as_string(), "resource: no address left in 10.88.0.0/30");
    EXPECT_EQ(rows[0].at("time").as_string(), "12:00:00.000");
    EXPECT_EQ(rows[1].at("op").as_string(), "  lease");
    EXPECT_EQ(rows[1].at("time").as_string(), "12:00:00.001");
}

TEST(event_object, is_a_v1_event_about_the_pod) {
    kube_event event;
    event.warning = true;
    event.reason = "BackOff";
    event.namespace_ = "default";
    event.pod = "web";
    event.field_path = "spec.containers{c}";
    event.count = 3;
    event.last_seen = noon;
    const auto object = event_object(event);
    EXPECT_EQ(object.at("type").as_string(), "Warning");
    EXPECT_EQ(object.at("lastTimestamp").as_string(), "2026-01-02T12:00:00Z");
    EXPECT_EQ(object.at("involvedObject").at("fieldPath").as_string(), "spec.containers{c}");
}

} // namespace
} // namespace gantry::core::admin
