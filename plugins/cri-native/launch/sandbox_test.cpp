// What a pod's supervisor holds: namespaces, host name, sysctls, /dev/shm, the shared PID namespace.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/files.hpp"
#include "plugins/cri-native/launch/defaults.hpp"
#include "plugins/cri-native/launch/testing.hpp"

namespace gantry::cri_native::launch::testing {
namespace {

ino_t namespace_of(pid_t pid, const std::string& kind) {
    struct stat st {};
    EXPECT_EQ(::stat(("/proc/" + (pid == 0 ? "self" : std::to_string(pid)) + "/ns/" + kind).c_str(), &st), 0) << kind;
    return st.st_ino;
}

std::string output_of(pod& p, const container_plan& plan) {
    const auto end = p.run(plan);
    EXPECT_TRUE(end) << end.error().message;
    return p.log(plan.id);
}

TEST(sandbox, has_its_own_net_ipc_uts_and_the_hosts_mount_and_pid_namespaces) {
    pod p;
    ASSERT_FALSE(p.failure()) << p.failure()->message;
    for (const char* own : {"net", "ipc", "uts"})
        EXPECT_NE(namespace_of(p.supervisor_pid(), own), namespace_of(0, own)) << own;
    for (const char* same : {"mnt", "pid", "user"})
        EXPECT_EQ(namespace_of(p.supervisor_pid(), same), namespace_of(0, same)) << same;
    EXPECT_EQ(
        output_of(p, p.shell("c", "hostname; ip -o link | cut -d: -f2; ip addr show lo | grep -c 'inet 127.0.0.1'")),
        "test-pod\n lo\n1\n");
}

TEST(sandbox, honours_the_hosts_namespaces) {
    pod p({.plan = {.host_network = true, .host_ipc = true, .host_uts = true}});
    ASSERT_FALSE(p.failure()) << p.failure()->message;
    for (const char* same : {"net", "ipc", "uts"})
        EXPECT_EQ(namespace_of(p.supervisor_pid(), same), namespace_of(0, same)) << same;
    EXPECT_FALSE(open_netns(p.run_dir())) << "nothing is pinned";
}

TEST(sandbox, applies_sysctls_inside_and_names_a_bad_one) {
    pod p({.plan = {.sysctls = {{"net.ipv4.ip_unprivileged_port_start", "23"}, {"kernel.shm_rmid_forced", "1"}}}});
    ASSERT_FALSE(p.failure()) << p.failure()->message;
    EXPECT_EQ(
        output_of(p,
                  p.shell("c", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced")),
        "23\n1\n");
    EXPECT_NE(read_all("/proc/sys/net/ipv4/ip_unprivileged_port_start"), "23\n");
    pod bad({.plan = {.sysctls = {{"net.no.such.key", "1"}}}});
    ASSERT_TRUE(bad.failure());
    EXPECT_EQ(bad.failure()->message, "set sysctl net/no/such/key: No such file or directory (1)");
}

TEST(sandbox, shares_dev_shm_between_its_containers_only) {
    pod p;
    ASSERT_TRUE(p.run(p.shell("a", "echo shared > /dev/shm/f")));
    EXPECT_EQ(output_of(p, p.shell("b", "cat /dev/shm/f; df -k /dev/shm | tail -n 1 | awk '{print $2}'")),
              "shared\n8192\n");
    EXPECT_FALSE(base::read_file("/dev/shm/f"));
}

TEST(sandbox, pins_the_network_namespace_beyond_its_supervisor) {
    pod p;
    const auto before = open_netns(p.run_dir());
    ASSERT_TRUE(before) << before.error().message;
    struct stat pinned {};
    ASSERT_EQ(::fstat(before->get(), &pinned), 0);
    EXPECT_EQ(pinned.st_ino, namespace_of(p.supervisor_pid(), "net"));
    ::kill(p.supervisor_pid(), SIGKILL);
    ASSERT_TRUE(p.pump([&] { return p.lost().has_value(); }));
    const auto after = open_netns(p.run_dir());
    ASSERT_TRUE(after);
    struct stat st {};
    ASSERT_EQ(::fstat(after->get(), &st), 0);
    EXPECT_EQ(st.st_ino, pinned.st_ino);
    bool entered = false;
    std::thread([&] { entered = ::setns(after->get(), CLONE_NEWNET) == 0; }).join();
    EXPECT_TRUE(entered) << "what network DEL does";
}

TEST(sandbox, is_removed_whole_and_again) {
    pod p;
    const std::string run_dir = p.run_dir();
    ASSERT_TRUE(p.await<void>([&](auto done) { p.client().shutdown(false, done); }));
    p.drop_client();
    ASSERT_TRUE(remove_sandbox(run_dir));
    struct stat st {};
    EXPECT_NE(::stat(run_dir.c_str(), &st), 0);
    EXPECT_TRUE(remove_sandbox(run_dir));
    EXPECT_EQ(read_all("/proc/self/mountinfo").find(run_dir), std::string::npos);
}

TEST(sandbox, shuts_down_only_when_empty_unless_forced) {
    pod p;
    ASSERT_TRUE(p.create_and_start(p.plan("c", {"sleep", "1000"})));
    const auto refused = p.await<void>([&](auto done) { p.client().shutdown(false, done); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, code::busy);
    EXPECT_TRUE(p.exec("c", "true"));
}

TEST(sandbox, makes_sockets_inside_the_pods_network) {
    pod p;
    auto inside = p.await<base::unique_fd>([&](auto done) { p.client().socket(AF_INET, SOCK_STREAM, done); });
    ASSERT_TRUE(inside) << inside.error().message;
    ASSERT_TRUE(p.create_and_start(p.shell("c", "echo hello | nc -l -p 8080")));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(8080);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_TRUE(eventually(
        [&] { return ::connect(inside->get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0; }));
    char bytes[16] = {};
    EXPECT_EQ(::read(inside->get(), bytes, sizeof bytes), 6);
    EXPECT_STREQ(bytes, "hello\n");
}

TEST(sandbox, shares_one_pid_namespace_whose_first_process_holds_nothing) {
    pod p({.plan = {.shared_pid = true}});
    ASSERT_FALSE(p.failure()) << p.failure()->message;
    auto first = p.plan("first", {"sleep", "4321"});
    first.pid = pid_mode::pod;
    ASSERT_TRUE(p.create_and_start(first));
    auto second =
        p.shell("second", "ps | grep -c 'sleep 432[1]'; cat /proc/1/comm; grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs)' "
                          "/proc/1/status; ls -A /proc/1/root 2>&1; (true &); echo $$ > /dev/shm/pid");
    second.pid = pid_mode::pod;
    second.process.capabilities = all_capabilities();
    const std::string out = output_of(p, second);
    EXPECT_NE(out.find("1\npause\n"), std::string::npos) << out;
    EXPECT_NE(out.find("Uid:\t65534\t65534\t65534\t65534\nCapEff:\t0000000000000000\n"), std::string::npos) << out;
    EXPECT_EQ(out.find("bin"), std::string::npos) << "its root is empty: " << out;
    EXPECT_NE(read_all(p.run_dir() + "/shm/pid"), "1\n");
    ASSERT_TRUE(p.signal("first", SIGKILL));
    EXPECT_EQ(p.wait_exit("first")->exit_code, 137);
}

TEST(sandbox, kills_what_a_container_leaves_in_a_shared_pid_namespace) {
    test_cgroup group("c");
    pod p({.plan = {.shared_pid = true}});
    auto plan = p.shell("c", "setsid sleep 1000 & setsid sleep 1000 & echo started");
    plan.pid = pid_mode::pod;
    plan.cgroup = group.plan();
    const auto end = p.run(plan);
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->exit_code, 0);
    EXPECT_TRUE(eventually([&] { return read_all(group.dir("memory") + "/cgroup.procs").empty(); }));
}

TEST(sandbox, host_pid_containers_see_the_host_and_their_orphans_are_reaped) {
    pod p;
    auto plan =
        p.shell("c", "test -d /proc/" + std::to_string(::getpid()) + " && echo host; (sleep 0.05 &); echo $PPID");
    plan.pid = pid_mode::host;
    const std::string out = output_of(p, plan);
    EXPECT_EQ(out, "host\n" + std::to_string(p.supervisor_pid()) + "\n");
    const std::string task =
        "/proc/" + std::to_string(p.supervisor_pid()) + "/task/" + std::to_string(p.supervisor_pid()) + "/children";
    EXPECT_TRUE(eventually([&] { return read_all(task).empty(); })) << read_all(task);
}

TEST(sandbox, supervisor_lives_in_the_cgroup_it_was_given) {
    test_cgroup group("supervisor", true);
    pod p({.plan = {.cgroup = {.v1 = group.v1_dirs(), .v2 = group.plan().v2}}});
    ASSERT_FALSE(p.failure()) << p.failure()->message;
    for (const auto& dir : group.dirs())
        EXPECT_EQ(read_all(dir + "/cgroup.procs"), std::to_string(p.supervisor_pid()) + "\n") << dir;
    ASSERT_TRUE(p.await<void>([&](auto done) { p.client().shutdown(true, done); }));
}

TEST(sandbox, mount_propagation_follows_the_plan) {
    pod p;
    const std::string source = p.dir() / "shared";
    ASSERT_TRUE(base::make_dirs(source));
    ASSERT_EQ(::mount(source.c_str(), source.c_str(), nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount(nullptr, source.c_str(), nullptr, MS_SHARED, nullptr), 0);
    for (const char* name : {"/host", "/guest"}) ASSERT_TRUE(base::make_dirs(source + name));
    const auto with = [&](const std::string& id, mount_propagation how, const std::string& script) {
        auto plan = p.shell(id, script);
        plan.process.capabilities = all_capabilities();
        plan.mounts.push_back({.kind = mount_kind::bind, .source = source, .target = "/v", .propagation = how});
        return plan;
    };
    const std::string wait = "echo up; while ! test -e /dev/shm/go; do usleep 1000; done; ls /v/host";
    ASSERT_TRUE(p.create_and_start(with("private", mount_propagation::rprivate, wait)));
    ASSERT_TRUE(p.create_and_start(with("slave", mount_propagation::rslave, wait)));
    ASSERT_TRUE(eventually([&] { return p.log("private") == "up\n" && p.log("slave") == "up\n"; }));
    ASSERT_EQ(::mount("tmpfs", (source + "/host").c_str(), "tmpfs", 0, nullptr), 0);
    write_all(source + "/host/new", "");
    write_all(p.run_dir() + "/shm/go", "");
    ASSERT_TRUE(p.wait_exit("private"));
    ASSERT_TRUE(p.wait_exit("slave"));
    EXPECT_EQ(p.log("private"), "up\n");
    EXPECT_EQ(p.log("slave"), "up\nnew\n");
    ASSERT_TRUE(
        p.run(with("shared", mount_propagation::rshared, "mount -t tmpfs tmpfs /v/guest && touch /v/guest/mark")));
    EXPECT_EQ(p.log("shared"), "");
    struct stat st {};
    EXPECT_EQ(::stat((source + "/guest/mark").c_str(), &st), 0) << "Bidirectional reaches the host";
    for (const char* name : {"/host", "/guest", ""}) EXPECT_EQ(::umount2((source + name).c_str(), MNT_DETACH), 0);
}

TEST(sandbox, recursive_read_only_covers_submounts_and_plain_read_only_does_not) {
    pod p;
    const std::string source = p.dir() / "source";
    ASSERT_TRUE(base::make_dirs(source + "/sub"));
    ASSERT_EQ(::mount("tmpfs", (source + "/sub").c_str(), "tmpfs", 0, nullptr), 0);
    for (const bool recursive : {false, true}) {
        const std::string id = recursive ? "recursive" : "plain";
        auto plan = p.shell(id, "touch /v/f 2>/dev/null || echo top; touch /v/sub/f 2>/dev/null || echo sub");
        plan.mounts.push_back({.kind = mount_kind::bind,
                               .source = source,
                               .target = "/v",
                               .readonly = true,
                               .recursive_readonly = recursive});
        EXPECT_EQ(output_of(p, plan), recursive ? "top\nsub\n" : "top\n");
    }
    EXPECT_EQ(::umount2((source + "/sub").c_str(), MNT_DETACH), 0);
}

} // namespace
} // namespace gantry::cri_native::launch::testing
