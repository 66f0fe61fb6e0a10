// The life of an instance: create, init, activate, drain, stop, destroy; what fails in each, and that nothing outlives
// stop.
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sdk/plugin_under_test.hpp"

namespace gantry::sdk_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct minimal {
    result<void> init(sdk::host&) { return {}; }
};

TEST(life, plugin_of_one_function_lives_and_dies) {
    started<minimal> it;
    ASSERT_TRUE(it.begun.ok());
    EXPECT_EQ(it.network, nullptr);
    const auto* table = it.plugin.abi();
    EXPECT_EQ(table->struct_size, sizeof(gantry_plugin));
    EXPECT_EQ(table->activate, nullptr);
    EXPECT_EQ(table->drain, nullptr);
    EXPECT_EQ(table->config_check, nullptr);
    EXPECT_EQ(table->export_state, nullptr);
    it.plugin.stop();
    EXPECT_THAT(it.host.misbehaviour(), IsEmpty());
}

TEST(life, created_and_never_started_is_freed) {
    fake::host host;
    fake::plugin plugin(host, entry_of<minimal>());
    EXPECT_TRUE(plugin.created().ok());
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

TEST(life, unknown_index_is_an_error) {
    fake::host host;
    fake::plugin plugin(host, entry_of<minimal>(), 1);
    EXPECT_EQ(plugin.created().error.code, GANTRY_NOT_FOUND);
    EXPECT_EQ(entry_of<minimal>()->descriptor(1), nullptr);
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

struct throws_in_constructor {
    throws_in_constructor() { throw std::runtime_error("constructor fails"); }
    result<void> init(sdk::host&) { return {}; }
};

TEST(life, exception_in_the_constructor_is_an_error_of_create) {
    fake::host host;
    fake::plugin plugin(host, entry_of<throws_in_constructor>());
    EXPECT_EQ(plugin.created().error.code, GANTRY_INTERNAL);
    EXPECT_THAT(plugin.created().error.message, HasSubstr("constructor fails"));
}

struct throws_in_init {
    result<void> init(sdk::host&) { throw std::runtime_error("init fails"); }
};

TEST(life, exception_in_init_is_an_error_that_names_instance_and_step) {
    started<throws_in_init> it;
    EXPECT_EQ(it.begun.error.code, GANTRY_INTERNAL);
    EXPECT_THAT(it.begun.error.message, HasSubstr("\"test\": init() threw init fails"));
    EXPECT_THAT(it.host.misbehaviour(), IsEmpty());
}

struct needs_peer {
    result<void> init(sdk::host& host) { return host.require({GANTRY_SERVICE_TIMER, GANTRY_SERVICE_PEER}); }
};

TEST(life, missing_service_is_named_at_init) {
    fake::settings with;
    with.missing = {GANTRY_SERVICE_PEER};
    started<needs_peer> it(with);
    EXPECT_EQ(it.begun.error.code, GANTRY_UNSUPPORTED);
    EXPECT_THAT(it.begun.error.message, HasSubstr(GANTRY_SERVICE_PEER));
    EXPECT_TRUE(started<needs_peer>().begun.ok());
}

TEST(life, services_the_sdk_itself_needs_are_named_at_init) {
    for (const char* id : {GANTRY_SERVICE_OP, GANTRY_SERVICE_EXECUTOR, GANTRY_SERVICE_CONFIG}) {
        fake::settings with;
        with.missing = {id};
        started<minimal> it(with);
        EXPECT_EQ(it.begun.error.code, GANTRY_UNSUPPORTED);
        EXPECT_THAT(it.begun.error.message, HasSubstr(id));
    }
}

struct everything {
    static inline std::string trail;
    sdk::host* host = nullptr;
    sdk::timer timer;
    sdk::subscription subscription;
    std::jthread thread;

    everything() { trail = "create"; }
    ~everything() { trail += host != nullptr && host->context()->open() ? " ~open" : " ~closed"; }
    result<void> init(sdk::host& h) {
        host = &h;
        trail += " init";
        return {};
    }
    result<void> activate() {
        trail += " activate";
        GANTRY_TRY(timer, host->after(1h, [] { trail += " never"; }));
        GANTRY_TRY(subscription, host->subscribe("topic", [](auto, auto, auto) {}));
        thread = std::jthread([stop = host->stop_token()] {
            while (!stop.stop_requested()) std::this_thread::yield();
        });
        return {};
    }
    void drain(sdk::time_point) { trail += " drain"; }
    void stop() { trail += " stop"; }
    result<void> config_check(std::string_view json) {
        if (json == "throw") throw std::runtime_error("check fails");
        return json == "good" ? result<void>{} : error{.code = code::invalid, .message = "field x: wrong"};
    }
    result<void> config_apply(std::string_view json) {
        trail += " apply:" + std::string(json);
        return {};
    }
    result<sdk::reply> export_state(const sdk::request&, sdk::op&) { return sdk::reply{.bytes = "state"}; }
    result<sdk::reply> adopt(const sdk::request& request, sdk::op&) {
        return sdk::reply{.bytes = "took " + request.bytes};
    }
};

TEST(life, steps_come_in_order_and_the_plugin_is_destroyed_while_services_work) {
    started<everything> it;
    ASSERT_TRUE(it.begun.ok()) << it.begun.error.message;
    it.plugin.drain(1s);
    it.plugin.stop();
    EXPECT_EQ(everything::trail, "create init activate drain stop ~open");
    EXPECT_THAT(it.host.misbehaviour(), IsEmpty());
}

TEST(life, config_is_judged_then_applied) {
    started<everything> it;
    EXPECT_TRUE(it.plugin.config_check("good").ok());
    EXPECT_EQ(it.plugin.config_check("bad").error.message, "field x: wrong");
    EXPECT_THAT(it.plugin.config_check("throw").error.message, HasSubstr("config_check() threw check fails"));
    EXPECT_TRUE(it.plugin.config_apply("good").ok());
    EXPECT_THAT(everything::trail, HasSubstr(" apply:good"));
}

TEST(life, state_is_handed_over_by_operations) {
    started<everything> it;
    const auto state = it.plugin.call(it.plugin.abi()->export_state);
    EXPECT_EQ(state.bytes, "state");
    EXPECT_EQ(it.plugin.call(it.plugin.abi()->adopt, {state.bytes}).bytes, "took state");
}

struct busy {
    static inline std::atomic<bool> ended = false;
    result<void> init(sdk::host&) { return {}; }
    result<sdk::reply> work(const sdk::request&, sdk::op& op) {
        while (!op.cancelled()) std::this_thread::yield();
        ended = true;
        return sdk::reply{};
    }
    static const void* capability(std::string_view) {
        static constexpr auto network =
            sdk::capability<gantry_network>([](auto& t) { t.add = sdk::op_fn<&busy::work>; });
        return &network;
    }
};

TEST(life, stop_cancels_and_waits_for_work_on_the_executor) {
    started<busy> it;
    busy::ended = false;
    const auto op = it.plugin.begin(it.network->add);
    it.plugin.stop();
    EXPECT_TRUE(busy::ended);
    EXPECT_TRUE(it.host.operations().completed(op));
    EXPECT_THAT(it.host.misbehaviour(), IsEmpty());
}

struct waits_for_peer {
    static inline code outcome = code::ok;
    result<void> init(sdk::host& host) {
        host_ = &host;
        return {};
    }
    result<sdk::reply> ask(const sdk::request&, sdk::op& op) {
        auto answer = host_->call_wait("peer/1", "slow", {}, sdk::time_point::max(), op.stop_token());
        outcome = answer ? code::ok : answer.error().code;
        return answer;
    }
    static const void* capability(std::string_view) {
        static constexpr auto network =
            sdk::capability<gantry_network>([](auto& t) { t.add = sdk::op_fn<&waits_for_peer::ask>; });
        return &network;
    }
    sdk::host* host_ = nullptr;
};

TEST(life, stop_ends_a_worker_that_waits_for_a_peer_and_the_late_reply_is_dropped) {
    std::atomic<bool> asked = false, answer = false;
    fake::host host;
    host.add_peer("peer/1", "slow", [&](const auto&, const auto&, const auto&) {
        asked = true;
        while (!answer) std::this_thread::yield();
        return fake::outcome{};
    });
    {
        fake::plugin plugin(host, entry_of<waits_for_peer>());
        ASSERT_TRUE(plugin.start().ok());
        const auto* network = plugin.capability<gantry_network>(GANTRY_NETWORK);
        (void)plugin.begin(network->add);
        while (!asked) std::this_thread::yield();
        plugin.stop();
        EXPECT_EQ(waits_for_peer::outcome, code::cancelled);
    }
    answer = true;
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

struct fails_after_registering {
    sdk::timer timer;
    result<void> init(sdk::host& host) {
        GANTRY_TRY(timer, host.after(0s, [] { ADD_FAILURE() << "a timer of an instance that failed to start ran"; }));
        return error{.code = code::unavailable, .message = "no device"};
    }
};

TEST(life, failed_init_leaves_nothing_registered) {
    started<fails_after_registering> it;
    EXPECT_EQ(it.begun.error.message, "no device");
    it.host.lane().sync([] {});
    EXPECT_THAT(it.host.misbehaviour(), IsEmpty());
}

struct keeps_host {
    static inline std::optional<sdk::host> kept;
    result<void> init(sdk::host& host) {
        kept = host;
        return {};
    }
};

TEST(life, host_that_is_kept_too_long_is_an_error_not_a_crash) {
    {
        started<keeps_host> it;
        ASSERT_TRUE(it.begun.ok());
        it.plugin.stop();
        EXPECT_EQ(keeps_host::kept->submit([] {}).error().code, code::unavailable);
        EXPECT_EQ(keeps_host::kept->get("key").error().code, code::unavailable);
        keeps_host::kept->info("not seen");
        keeps_host::kept->post([] {});
        EXPECT_THAT(it.host.logs(), IsEmpty());
        EXPECT_THAT(it.host.misbehaviour(), IsEmpty());
    }
    keeps_host::kept.reset(); // after the host itself is gone
}

struct base_ops {
    result<sdk::reply> inherited(const sdk::request&, sdk::op&) { return sdk::reply{.bytes = "from the base"}; }
};
struct derived : base_ops {
    result<void> init(sdk::host&) { return {}; }
    static const void* capability(std::string_view) {
        static constexpr auto network = sdk::capability<gantry_network>([](auto& t) {
            t.add = sdk::op_fn<&derived::inherited, derived>;
            t.del = sdk::op_fn<&derived::inherited>; // of base_ops, which is not the plugin
        });
        return &network;
    }
};

TEST(life, inherited_operation_works_when_the_class_is_named_and_is_refused_when_not) {
    started<derived> it;
    EXPECT_EQ(it.plugin.call(it.network->add).bytes, "from the base");
    EXPECT_EQ(it.plugin.call(it.network->del).error.code, GANTRY_INTERNAL);
    EXPECT_TRUE(it.host.logged("op_fn<&Base::member, Plugin>"));
}

} // namespace
} // namespace gantry::sdk_test
