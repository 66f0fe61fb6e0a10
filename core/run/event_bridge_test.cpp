#include "core/run/event_bridge.hpp"

#include <gtest/gtest.h>

namespace gantry::core {
namespace {

TEST(parse_plugin_event, reads_type_reason_message_and_pod) {
    const auto event = parse_plugin_event(
        R"({"type":"Warning","reason":"NoAddress","message":"range is full","pod":{"namespace":"a","name":"b","uid":"c"}})");
    ASSERT_TRUE(event);
    EXPECT_TRUE(event->warning);
    EXPECT_EQ(event->reason, "NoAddress");
    EXPECT_EQ(event->namespace_ + "/" + event->pod + "/" + event->uid, "a/b/c");
}

TEST(parse_plugin_event, names_what_is_missing) {
    EXPECT_EQ(parse_plugin_event(R"({"reason":"x"})").error().message, "event: pod.name: must not be empty");
    EXPECT_EQ(parse_plugin_event(R"({"pod":{"name":"x"}})").error().message, "event: reason: must not be empty");
    EXPECT_FALSE(parse_plugin_event("[1"));
}

TEST(event_bridge, gives_each_subscriber_the_latest_state_of_a_key) {
    boost::asio::io_context loop;
    event_bridge bridge(loop, [](kube_event) {});
    auto port = bridge.port();
    port.publish("links", "eth0", "down");
    port.publish("links", "eth0", "up");
    std::vector<std::string> seen;
    const auto subscription = port.subscribe("links", [&](const std::string& key, const std::string& bytes) { seen.push_back(key + "=" + bytes); });
    loop.run_for(std::chrono::milliseconds(20));
    EXPECT_EQ(seen, std::vector<std::string>{"eth0=up"});
    port.unsubscribe(subscription);
    port.publish("links", "eth0", "gone");
    loop.restart();
    loop.run();
    EXPECT_EQ(seen.size(), 1u);
}

TEST(event_bridge, records_events_and_drops_malformed_ones) {
    boost::asio::io_context loop;
    std::vector<std::string> reasons;
    event_bridge bridge(loop, [&](kube_event event) { reasons.push_back(event.reason); });
    auto port = bridge.port();
    port.emit("net", R"({"reason":"R","pod":{"name":"p"}})");
    port.emit("net", "nonsense");
    EXPECT_EQ(reasons, std::vector<std::string>{"R"});
}

} // namespace
} // namespace gantry::core
