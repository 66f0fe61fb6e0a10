#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>

#include "core/kernel/file_worker.hpp"
#include "core/kernel/kube_event.hpp"
#include "core/kernel/pod_record.hpp"
#include "core/kernel/pod_table.hpp"
#include "core/kernel/spawn.hpp"
#include "core/kernel/status_manager.hpp"
#include "core/kernel/topic.hpp"
#include "core/pod/pod_fixture.hpp"

namespace gantry::core {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using testing::at;
using ::testing::ElementsAre;

TEST(event_bus, gives_a_slow_reader_the_latest_state_of_each_key) {
    asio::io_context io;
    topic<int> bus(io.get_executor());
    bus.publish("old", 1);
    const auto reader = bus.subscribe();
    for (int i = 0; i < 100; ++i) bus.publish("a", i);
    bus.publish("b", 7);
    bus.erase("old");
    std::vector<std::string> seen;
    const auto read = [](std::shared_ptr<topic<int>::subscription> from, std::vector<std::string>& out) -> asio::awaitable<void> {
        while (const auto item = co_await from->next())
            out.push_back(item->key + "=" + (item->state ? std::to_string(*item->state) : "gone"));
    };
    asio::co_spawn(io, read(reader, seen), asio::detached);
    io.poll();
    EXPECT_THAT(seen, ElementsAre("old=gone", "a=99", "b=7"));
    bus.publish("a", 100);
    io.poll();
    EXPECT_EQ(seen.back(), "a=100");
}

TEST(event_bus, forgets_readers_that_left) {
    asio::io_context io;
    topic<int> bus(io.get_executor());
    std::weak_ptr<topic<int>::subscription> left = bus.subscribe();
    EXPECT_TRUE(left.expired());
    bus.publish("a", 1);
    EXPECT_EQ(bus.state().at("a"), 1);
}

kube_event event(const std::string& reason, const std::string& uid = "u") {
    kube_event e;
    e.reason = reason;
    e.uid = uid;
    return e;
}

TEST(events, count_repetitions_instead_of_keeping_them) {
    event_recorder events;
    events.record(event("A"), at(1));
    events.record(event("B"), at(2));
    events.record(event("A"), at(3));
    const auto all = events.list();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].reason, "B");
    EXPECT_EQ(all[1].count, 2u);
    EXPECT_EQ(all[1].first_seen, at(1));
    EXPECT_EQ(all[1].last_seen, at(3));
    EXPECT_EQ(all[1].id, 1u);
}

TEST(events, keep_a_bounded_number) {
    std::vector<std::uint64_t> dropped;
    event_recorder events(2, {.changed = {}, .dropped = [&](std::uint64_t id) { dropped.push_back(id); }});
    for (const auto* reason : {"A", "B", "C"}) events.record(event(reason), at(1));
    EXPECT_EQ(events.list().size(), 2u);
    EXPECT_THAT(dropped, ElementsAre(1u));
    EXPECT_TRUE(events.list("other").empty());
}

TEST(pod_record, survives_its_file) {
    pod_record r;
    r.namespace_ = "ns";
    r.name = "web";
    r.start_time = at(5) + 123ns;
    r.admitted = true;
    r.restarts["c"] = {.key = 0xfedcba9876543210, .delay = 40s, .last_step = at(9)};
    model::pod_status status;
    status.phase = "Succeeded";
    r.final_status = std::make_shared<const model::pod_status>(status);
    const auto back = decode_record(encode(r));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->name, "web");
    EXPECT_EQ(back->start_time, r.start_time);
    EXPECT_TRUE(back->admitted);
    EXPECT_EQ(back->restarts, r.restarts);
    EXPECT_EQ(*back->final_status, status);
}

TEST(pod_record, refuses_what_is_none) {
    EXPECT_FALSE(decode_record("{"));
    EXPECT_FALSE(decode_record("[]"));
    EXPECT_TRUE(decode_record(R"({"restarts": {"c": 1}, "startTime": 7})"));
}

std::shared_ptr<const model::pod> pod(const std::string& uid, const std::string& name, const std::string& file = "") {
    auto p = std::make_shared<model::pod>();
    p->metadata.uid = uid;
    p->metadata.name = name;
    p->metadata.namespace_ = "ns";
    if (!file.empty()) p->metadata.annotations["kubernetes.io/config.file"] = file;
    return p;
}

TEST(pod_table, orders_rivals_by_source_then_file_then_uid) {
    pod_table table(2);
    table.set(1, pod("a", "web"));
    table.set(0, pod("z", "web", "/m/a.yaml"));
    table.set(0, pod("b", "web", "/m/a.yaml.bak"));
    table.set(0, pod("c", "other"));
    std::vector<std::string> order;
    for (const auto& e : table.candidates("ns/web")) order.push_back(e.pod->metadata.uid);
    EXPECT_THAT(order, ElementsAre("z", "b", "a"));
}

TEST(pod_table, drops_at_the_end_of_a_listing_what_it_did_not_name) {
    pod_table table(1);
    table.set(0, pod("a", "a"));
    table.set(0, pod("b", "b"));
    table.begin_listing(0);
    table.set(0, pod("b", "b"));
    EXPECT_TRUE(table.find("a")) << "not before the end";
    EXPECT_THAT(table.end_listing(0), ElementsAre("a"));
    EXPECT_FALSE(table.find("a"));
    EXPECT_TRUE(table.find("b"));
}

TEST(pod_table, lets_the_first_source_win_a_uid) {
    pod_table table(2);
    table.set(1, pod("u", "second"));
    table.set(0, pod("u", "first"));
    EXPECT_EQ(table.find("u")->pod->metadata.name, "first");
    EXPECT_TRUE(table.erase(0, "u"));
    EXPECT_FALSE(table.erase(0, "u"));
    EXPECT_EQ(table.find("u")->pod->metadata.name, "second");
}

TEST(status_word, is_what_kubectl_prints) {
    const auto p = testing::pod_with("Always", {"a", "b"}, {"i"});
    model::pod_status s;
    s.phase = "Pending";
    s.init_container_statuses.resize(1);
    s.init_container_statuses[0].name = "i";
    s.container_statuses.resize(2);
    s.container_statuses[0].name = "a";
    s.container_statuses[1].name = "b";
    s.init_container_statuses[0].state.value.running = model::container_state_running{};
    EXPECT_EQ(status_word(p, s, false), "Init:0/1");
    s.init_container_statuses[0].state.value = {};
    s.init_container_statuses[0].state.value.waiting = model::container_state_waiting{.reason = "CrashLoopBackOff"};
    EXPECT_EQ(status_word(p, s, false), "Init:CrashLoopBackOff");
    s.init_container_statuses[0].state.value = {};
    s.init_container_statuses[0].state.value.terminated = model::container_state_terminated{.reason = "Completed"};
    s.phase = "Running";
    s.container_statuses[0].state.value.running = model::container_state_running{};
    s.container_statuses[0].ready = true;
    s.container_statuses[1].state.value.terminated = model::container_state_terminated{.reason = "Completed"};
    EXPECT_EQ(status_word(p, s, false), "Running");
    s.container_statuses[1].state.value = {};
    s.container_statuses[1].state.value.waiting = model::container_state_waiting{.reason = "ImagePullBackOff"};
    EXPECT_EQ(status_word(p, s, false), "ImagePullBackOff");
    EXPECT_EQ(status_word(p, s, true), "Terminating");
}

TEST(file_worker, works_elsewhere_and_answers_on_the_loop) {
    asio::io_context io;
    file_worker files(io.get_executor());
    std::thread::id job, after;
    const auto run = [](file_worker& f, std::thread::id& there, std::thread::id& here) -> asio::awaitable<void> {
        std::function<void()> work = [&] { there = std::this_thread::get_id(); };
        co_await f.run(std::move(work));
        here = std::this_thread::get_id();
    };
    asio::co_spawn(io, run(files, job, after), asio::detached);
    io.run();
    EXPECT_NE(job, std::this_thread::get_id());
    EXPECT_EQ(after, std::this_thread::get_id());
}

TEST(task_group, cancels_its_tasks_with_the_one_who_waits) {
    asio::io_context io;
    bool joined = true, cancelled = false;
    const auto task = [](asio::io_context& loop, bool& seen) -> asio::awaitable<void> {
        signal never(loop.get_executor());
        seen = !co_await never.wait();
    };
    const auto wait = [&task](asio::io_context& loop, bool& seen, bool& result) -> asio::awaitable<void> {
        task_group group(loop.get_executor());
        group.add(task(loop, seen));
        result = co_await group.join();
    };
    asio::cancellation_signal stop;
    const auto outer = [&]() -> asio::awaitable<void> { co_await run_cancellable(wait(io, cancelled, joined), stop); };
    asio::co_spawn(io, outer(), asio::detached);
    io.poll();
    EXPECT_FALSE(cancelled);
    asio::post(io, [&] { stop.emit(asio::cancellation_type::terminal); });
    io.restart();
    io.run();
    EXPECT_TRUE(cancelled);
    EXPECT_FALSE(joined);
}

} // namespace
} // namespace gantry::core
