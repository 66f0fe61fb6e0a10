// The plugin's process dies, or the supervisor does.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.hpp"
#include "plugins/cri-native/launch/spawn.hpp"
#include "plugins/cri-native/launch/testing.hpp"

namespace gantry::cri_native::launch::testing {
namespace {

const container_info* find(const std::vector<container_info>& all, const std::string& id) {
    for (const auto& c : all)
        if (c.id == id) return &c;
    return nullptr;
}

TEST(recovery, a_new_client_finds_every_container_in_its_state) {
    pod p;
    ASSERT_TRUE(p.create(p.shell("created", "echo started later")));
    ASSERT_TRUE(p.create_and_start(p.shell("running", "trap 'exit 5' TERM; echo up; while :; do usleep 1000; done")));
    ASSERT_TRUE(p.run(p.shell("exited", "exit 3")));
    ASSERT_TRUE(p.create_and_start(p.shell("dies", "while ! test -e /dev/shm/go; do usleep 1000; done; exit 9")));
    ASSERT_TRUE(eventually([&] { return p.log("running") == "up\n"; }));
    p.drop_client();
    write_all(p.run_dir() + "/shm/go", "");
    ASSERT_TRUE(eventually([&] { return base::read_file(p.run_dir() + "/exits/dies").ok(); }))
        << "recorded with nobody there";

    const auto known = p.reconnect();
    ASSERT_TRUE(known) << known.error().message;
    ASSERT_EQ(known->size(), 4u);
    EXPECT_EQ(find(*known, "created")->state, container_state::created);
    EXPECT_EQ(find(*known, "running")->state, container_state::running);
    EXPECT_GT(find(*known, "running")->pid, 0);
    EXPECT_EQ(find(*known, "exited")->exit_code, 3);
    EXPECT_EQ(find(*known, "dies")->exit_code, 9);

    ASSERT_TRUE(p.start("created"));
    ASSERT_TRUE(p.wait_exit("created"));
    EXPECT_EQ(p.log("created"), "started later\n");
    ASSERT_TRUE(p.signal("running", SIGTERM));
    EXPECT_EQ(p.wait_exit("running")->exit_code, 5);
}

// cases.md 43: killed at any time, what it started goes on, and the next process takes over at once.
TEST(recovery, plugin_process_killed_with_9_touches_no_container) {
    scratch dir;
    const std::string run_dir = dir / "run";
    ASSERT_TRUE(base::make_dirs(run_dir, 0700));
    const pid_t plugin = ::fork();
    if (plugin == 0) {
        auto image = supervisor_image::make();
        bool ready = false;
        auto made = client::spawn(*image, {.id = "pod", .run_dir = run_dir, .hostname = "h"}, {},
                                  [&](result<void> r) { ready = r.ok(); });
        while (!ready) (*made)->on_readable();
        container_plan plan;
        plan.id = "c";
        plan.log_path = dir / "log";
        plan.process.argv = {"/bin/busybox", "sleep", "1000"};
        plan.rootfs.bind = "/";
        bool running = false;
        (*made)->create(plan, [&](result<pid_t> r) {
            if (r) (*made)->start("c", [&](result<void> s) { running = s.ok(); });
        });
        while (!running) (*made)->on_readable();
        write_all(dir / "running", "");
        for (;;) ::pause();
    }
    ASSERT_TRUE(eventually([&] { return base::read_file(dir / "running").ok(); }));
    ::kill(plugin, SIGKILL);
    ASSERT_EQ(::waitpid(plugin, nullptr, 0), plugin);

    answer<std::vector<container_info>> known;
    std::optional<container_info> ended;
    auto taken =
        client::connect(run_dir, {.exited = [&](const container_info& c) { ended = c; }, .lost = {}}, known.fn());
    ASSERT_TRUE(taken) << taken.error().message;
    ASSERT_TRUE(eventually([&] { return (*taken)->on_readable(), known.came(); }));
    ASSERT_TRUE(*known);
    ASSERT_EQ((*known)->size(), 1u);
    EXPECT_EQ((**known)[0].state, container_state::running);
    EXPECT_EQ(::kill((**known)[0].pid, 0), 0);
    (*taken)->signal("c", SIGKILL, [](result<void>) {});
    ASSERT_TRUE(eventually([&] { return (*taken)->on_readable(), ended.has_value(); }));
    EXPECT_EQ(ended->exit_code, 137);
    (*taken)->shutdown(true, [](result<void>) {});
    EXPECT_TRUE(eventually([&] { return !connect_supervisor(run_dir).ok(); }));
    EXPECT_TRUE(eventually([&] { return remove_sandbox(run_dir).ok(); }));
}

TEST(recovery, a_second_plugin_process_is_refused_while_the_first_lives) {
    pod p;
    answer<std::vector<container_info>> second;
    auto other = client::connect(p.run_dir(), {}, second.fn());
    ASSERT_TRUE(other);
    ASSERT_TRUE(eventually([&] { return (*other)->on_readable(), second.came(); }));
    ASSERT_FALSE(*second);
    EXPECT_EQ(second->error().code, code::busy);
    EXPECT_TRUE(p.run(p.shell("c", "true"))) << "the first one did not notice";
}

TEST(recovery, a_second_supervisor_for_the_same_directory_is_refused) {
    pod p;
    const auto image = supervisor_image::make();
    ASSERT_TRUE(image);
    const auto second = client::spawn(*image, {.id = "pod", .run_dir = p.run_dir()}, {}, [](result<void>) {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, code::exists);
    EXPECT_TRUE(p.run(p.shell("c", "true")));
}

TEST(recovery, a_killed_supervisor_is_told_at_once_and_its_containers_can_be_killed_by_cgroup) {
    test_cgroup group("c");
    pod p;
    auto plan = p.plan("c", {"sleep", "1000"});
    plan.cgroup = group.plan();
    ASSERT_TRUE(p.create_and_start(plan));
    answer<exec_result> pending;
    p.client().exec_captured("c", pod::exec_shell("sleep 1000"), pending.fn());
    ::kill(p.supervisor_pid(), SIGKILL);
    ASSERT_TRUE(p.pump([&] { return p.lost().has_value(); }));
    EXPECT_EQ(p.lost()->code, code::unavailable);
    ASSERT_TRUE(pending.came()) << "nobody waits for ever";
    EXPECT_EQ(pending->error().code, code::unavailable);
    EXPECT_FALSE(read_all(group.dir("memory") + "/cgroup.procs").empty()) << "the container lives on";
    EXPECT_FALSE(p.exec("c", "true"));
    p.drop_client();
    const auto again = p.reconnect();
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, code::unavailable);
}

TEST(recovery, supervisor_ignores_what_a_terminal_or_service_manager_sends) {
    pod p;
    for (const int s : {SIGTERM, SIGHUP, SIGINT, SIGPIPE, SIGUSR1}) ::kill(p.supervisor_pid(), s);
    EXPECT_TRUE(p.run(p.shell("c", "true")));
    EXPECT_FALSE(p.lost());
}

TEST(recovery, garbage_on_the_socket_costs_the_connection_only) {
    pod p;
    const std::string run_dir = p.run_dir();
    ASSERT_TRUE(p.create_and_start(p.plan("c", {"sleep", "1000"})));
    p.drop_client();
    for (const std::string& bytes : {std::string("x"), std::string(4000, '\xff'), std::string(100, '\0')}) {
        auto socket = connect_supervisor(run_dir);
        ASSERT_TRUE(socket) << socket.error().message;
        ASSERT_GT(::write(socket->get(), bytes.data(), bytes.size()), 0);
        char reply = 0;
        EXPECT_TRUE(eventually([&] { return ::read(socket->get(), &reply, 1) == 0; })) << "it hangs up";
    }
    const auto known = p.reconnect();
    ASSERT_TRUE(known) << known.error().message;
    EXPECT_EQ(known->size(), 1u);
}

TEST(recovery, more_containers_than_one_message_holds_are_all_listed) {
    pod p;
    constexpr int many = 300;
    for (int i = 0; i < many; ++i) {
        container_plan plan;
        plan.id = "container-" + std::string(90, 'x') + std::to_string(i);
        plan.process.argv = {"/bin/busybox", "true"};
        plan.rootfs.bind = "/";
        ASSERT_TRUE(p.create_and_start(plan)) << i;
    }
    p.drop_client();
    const auto known = p.reconnect();
    ASSERT_TRUE(known);
    EXPECT_EQ(known->size(), static_cast<std::size_t>(many));
}

} // namespace
} // namespace gantry::cri_native::launch::testing
