// The life of a plugin in the host, with a real library.
#include <fcntl.h>

#include <fstream>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "tests/host/host_fixture.hpp"

namespace gantry::core {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

class plugin_life : public host_fixture {};

TEST_F(plugin_life, goes_from_file_to_active_to_stopped) {
    add("mis");
    ASSERT_TRUE(create());
    EXPECT_EQ(info("mis").state, plugin_state::loaded);
    EXPECT_EQ(call("hello"), "unavailable: mis is not started");
    ASSERT_TRUE(wait(host_->start()));
    const auto up = info("mis");
    EXPECT_EQ(up.state, plugin_state::active);
    EXPECT_EQ(up.id, "com.acme.mischief");
    EXPECT_EQ(up.version, "1.0.0");
    EXPECT_EQ(up.sha256.size(), 64u);
    EXPECT_EQ(call("hello"), "hello");
    EXPECT_EQ(call("fail"), "not_found: no such thing");
    wait(host_->stop(5s));
    EXPECT_EQ(info("mis").state, plugin_state::stopped);
    EXPECT_EQ(call("hello"), "unavailable: mis is stopped");
    EXPECT_EQ(info("mis").faults, (std::map<std::string, std::uint64_t>{}));
}

TEST_F(plugin_life, loads_the_verified_copy_and_no_other_file) {
    add("mis");
    start();
    const auto copy = dir_ + "/run/" + options_.config.node.instance + "/lib/com.acme.mischief-" + info("mis").sha256 + ".so";
    std::ifstream maps("/proc/self/maps");
    bool mapped = false;
    for (std::string line; std::getline(maps, line);) {
        mapped = mapped || line.find(copy) != std::string::npos;
        EXPECT_EQ(line.find(std::string(GANTRY_TEST_PLUGINS) + "/mischief.so"), std::string::npos) << line;
    }
    EXPECT_TRUE(mapped) << copy;
}

TEST_F(plugin_life, comes_again_after_stop) {
    add("mis");
    start();
    wait(host_->stop(5s));
    const auto again = wait(host_->enable("mis"));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(call("hello"), "hello");
    EXPECT_EQ(wait(host_->enable("mis")).error().message, "mis is active already");
    EXPECT_EQ(wait(host_->enable("mos")).error().message, "no plugin instance \"mos\", there are mis");
}

TEST_F(plugin_life, a_plugin_that_fails_costs_only_itself) {
    add("bad", {{"init", "fail"}});
    add("late", {{"activate", "fail"}});
    add("good");
    options_.config.bind.capabilities[mischief_capability] = "good";
    start();
    EXPECT_EQ(info("bad").state, plugin_state::failed);
    EXPECT_EQ(info("bad").reason, "the device is not there");
    EXPECT_EQ(info("late").state, plugin_state::failed);
    EXPECT_EQ(call("hello", 5s, "bad"), "unavailable: the device is not there");
    EXPECT_EQ(call("hello"), "hello");
}

TEST_F(plugin_life, gets_its_configuration_with_defaults) {
    add("mis", {{"activate", "sleep-1"}});
    start();
    EXPECT_EQ(call("config"), R"({"activate":"sleep-1","init":"","stop":""})");
}

TEST_F(plugin_life, a_configuration_with_faults_loads_nothing) {
    add("mis", {{"inti", "x"}});
    options_.config.bind.capabilities["com.acme.other/1"] = "mis";
    const auto created = create();
    ASSERT_FALSE(created);
    EXPECT_EQ(created.error().message,
              "node config:1: plugins[0].config.inti: unknown key, allowed init, activate, stop (did you mean \"init\"?)\n"
              "node config:1: bind.capabilities.com.acme.other/1: value \"mis\" does not offer com.acme.other/1, no plugin of this node "
              "offers it");
}

class host_services_of_a_plugin : public host_fixture {};

TEST_F(host_services_of_a_plugin, run_its_work_on_lane_and_workers) {
    add("mis");
    start();
    EXPECT_EQ(call("worker"), "worker");
    EXPECT_EQ(call("timer"), "timer");
    EXPECT_EQ(call("fd"), "fd");
}

TEST_F(host_services_of_a_plugin, keep_its_state) {
    add("mis");
    start();
    EXPECT_EQ(call("get"), "nothing");
    EXPECT_EQ(call("put seven"), "put seven");
    wait(host_->stop(5s));
    ASSERT_TRUE(wait(host_->enable("mis")));
    EXPECT_EQ(call("get"), "seven");
}

TEST_F(host_services_of_a_plugin, carry_events_by_the_loop) {
    std::map<std::uint64_t, event_port::handler> subscribers;
    options_.events.publish = [&](const std::string& topic, const std::string& key, const std::string& bytes) {
        EXPECT_EQ(topic, "mischief");
        for (const auto& [handle, fn] : subscribers) fn(key, bytes);
    };
    options_.events.subscribe = [&](const std::string&, event_port::handler fn) {
        subscribers.emplace(7, std::move(fn));
        return std::uint64_t{7};
    };
    options_.events.unsubscribe = [&](std::uint64_t handle) { subscribers.erase(handle); };
    add("mis");
    start();
    std::string heard;
    spawn_call("await-event", [&](result<op_reply> reply) { heard = reply ? reply->bytes : reply.error().message; });
    EXPECT_TRUE(eventually([&] { return subscribers.size() == 1; }));
    EXPECT_EQ(call("publish news"), "publish news");
    EXPECT_TRUE(eventually([&] { return heard == "news" && subscribers.empty(); })) << heard;
}

TEST_F(host_services_of_a_plugin, call_peers_with_the_pod_of_the_caller) {
    add("first");
    add("second");
    start();
    EXPECT_EQ(call("peer hello", 20s, "second"), "peer says hello");
    EXPECT_EQ(call("peer fail", 20s, "second"), "not_found: peer: no such thing");
    EXPECT_EQ(call("peer hello", 20s, "first"), "unavailable: no peer") << "it is bound to itself";
    const auto steps = host_->journal().steps("uid-1");
    ASSERT_EQ(steps.size(), 5u);
    EXPECT_EQ(steps[0].plugin, "second");
    EXPECT_EQ(steps[1].plugin, "first");
    EXPECT_EQ(steps[1].caller, "second");
    EXPECT_EQ(steps[3].message, "no such thing");
}

TEST_F(host_services_of_a_plugin, count_its_metrics_and_ops) {
    add("mis");
    start();
    call("hello");
    call("fail");
    const auto text = host_->metrics_text();
    for (const auto* line :
         {"gantry_plugin_pranks{instance=\"mis\",key=\"init\"} 1\n",
          "gantry_op_total{instance=\"mis\",capability=\"com.acme.mischief/1\",op=\"run\",code=\"ok\"} 1\n",
          "gantry_op_total{instance=\"mis\",capability=\"com.acme.mischief/1\",op=\"run\",code=\"not_found\"} 1\n",
          "gantry_op_seconds_count{instance=\"mis\",capability=\"com.acme.mischief/1\",op=\"run\"} 2\n",
          "gantry_instance_state{instance=\"mis\",plugin=\"com.acme.mischief\",state=\"active\"} 1\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line << "is not in\n" << text;
}

class operations : public host_fixture {};

TEST_F(operations, pass_descriptors) {
    add("mis");
    start();
    base::unique_fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    auto reply = wait(host_->client(mischief_capability)->call(mischief_run, {.bytes = "pass-fd", .fds = {null.get()}}, {}));
    ASSERT_TRUE(reply) << reply.error().message;
    ASSERT_EQ(reply->fds.size(), 1u);
    EXPECT_NE(reply->fds[0].get(), null.get());
    auto bad = wait(host_->client(mischief_capability)->call(mischief_run, {.bytes = "pass-fd", .fds = {9999}}, {}));
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().sys_errno, EBADF);
}

TEST_F(operations, that_are_never_completed_are_abandoned_in_time) {
    add("mis");
    start();
    EXPECT_EQ(call("never", 300ms), "timeout: mis: run did not finish within 300 ms and ignored its cancellation for 100 ms: it was abandoned");
    EXPECT_EQ(info("mis").ops_abandoned, 1u);
    EXPECT_EQ(info("mis").faults.at("abandoned_op"), 1u);
    EXPECT_EQ(call("hello"), "hello");
}

TEST_F(operations, end_when_the_caller_is_cancelled) {
    add("mis");
    start();
    asio::cancellation_signal signal;
    std::optional<result<op_reply>> outcome;
    auto call = host_->client(mischief_capability)->call(mischief_run, {.bytes = "never"}, {});
    asio::co_spawn(loop_, into<result<op_reply>>(std::move(call), [&](result<op_reply> r) { outcome = std::move(r); }),
                   asio::bind_cancellation_slot(signal.slot(), ignore_exception));
    EXPECT_TRUE(eventually([&] { return info("mis").ops_open == 1; }));
    signal.emit(asio::cancellation_type::terminal);
    EXPECT_TRUE(eventually([&] { return outcome.has_value(); }));
    ASSERT_FALSE(*outcome);
    EXPECT_EQ(outcome->error().code, code::cancelled);
}

TEST_F(operations, stream_items_with_back_pressure) {
    add("mis");
    start();
    asio::cancellation_signal signal;
    std::optional<result<op_reply>> outcome;
    int received = 0;
    bool in_order = true;
    call_options options{.timeout = std::chrono::nanoseconds::max()};
    options.on_item = [&](op_reply item) {
        in_order = in_order && item.bytes == std::to_string(received);
        if (++received == 5000) signal.emit(asio::cancellation_type::terminal);
    };
    auto watch = host_->client(mischief_capability)->call(mischief_watch, {}, std::move(options));
    asio::co_spawn(loop_, into<result<op_reply>>(std::move(watch), [&](result<op_reply> r) { outcome = std::move(r); }),
                   asio::bind_cancellation_slot(signal.slot(), ignore_exception));
    EXPECT_TRUE(eventually([&] { return outcome.has_value(); }));
    ASSERT_TRUE(*outcome) << outcome->error().message;
    EXPECT_TRUE(in_order);
    EXPECT_GE(received, 5000);
    EXPECT_LE(std::stoi((*outcome)->bytes), received + 1025) << "the plugin ran ahead of the queue";
}

TEST_F(operations, of_one_key_do_not_overlap) {
    add("mis");
    start();
    int done = 0;
    for (int i = 0; i < 20; ++i) {
        auto call = host_->client(mischief_capability)->call(mischief_run, {.bytes = "worker", .key = "pod"}, {});
        asio::co_spawn(loop_, into<result<op_reply>>(std::move(call), [&](result<op_reply> reply) { done += reply.ok(); }), ignore_exception);
    }
    EXPECT_TRUE(eventually([&] { return done == 20; }));
}

TEST_F(operations, still_open_at_the_end_are_given_up) {
    add("mis");
    start();
    std::optional<result<op_reply>> outcome;
    spawn_call("never", [&](result<op_reply> r) { outcome = std::move(r); });
    EXPECT_TRUE(eventually([&] { return info("mis").ops_open == 1; }));
    wait(host_->stop(50ms));
    EXPECT_TRUE(eventually([&] { return outcome.has_value(); }));
    EXPECT_EQ(outcome->error().message, "mis: run was given up: mis is stopped");
}

} // namespace
} // namespace gantry::core
