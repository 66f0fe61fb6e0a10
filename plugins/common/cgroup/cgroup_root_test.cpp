// On the real hierarchies of this machine, whatever they are; on a hybrid one everything runs again as if on pure v1.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "plugins/common/cgroup/cgroup.hpp"
#include "plugins/common/cgroup/control_file.hpp"
#include "plugins/common/cgroup/mounts.hpp"

namespace gantry::cgroup {

namespace {

using namespace std::chrono_literals;

time_point within(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

bool becomes(const std::function<bool()>& condition, std::chrono::milliseconds time = 30s) {
    const auto deadline = within(time);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        ::usleep(500);
    }
    return true;
}

/// A child process inside a group, entered as a launcher does it; killed and reaped at the end.
class member {
public:
    template <class Body>
    member(const hierarchy& tree, const std::string& group, Body body) {
        auto door = tree.open_entrance(group);
        if (!door) {
            ADD_FAILURE() << door.error().message;
            return;
        }
        clone_args args{};
        args.exit_signal = SIGCHLD;
        if (door->unified) {
            args.flags = CLONE_INTO_CGROUP;
            args.cgroup = static_cast<std::uint64_t>(door->unified.get());
        }
        pid_ = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
        if (pid_ != 0) {
            if (pid_ < 0) ADD_FAILURE() << "clone3: " << std::generic_category().message(errno);
            return;
        }
        for (const auto& tasks : door->tasks)
            if (::write(tasks.get(), "0", 1) != 1) ::_exit(111);
        ::_exit(body());
    }
    member(const member&) = delete;
    member& operator=(const member&) = delete;
    ~member() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        wait();
    }

    pid_t pid() const { return pid_; }
    /// The wait status.
    int wait() {
        int status = -1;
        if (pid_ > 0) ::waitpid(pid_, &status, 0);
        pid_ = -1;
        return status;
    }

private:
    pid_t pid_ = -1;
};

int sleep_forever() {
    for (;;) ::pause();
}

/// A number that parent and children share.
class shared_counter {
public:
    shared_counter()
        : value_(new (::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                     std::atomic<long>(0)) {}
    ~shared_counter() { ::munmap(value_, 4096); }
    std::atomic<long>& operator*() const { return *value_; }

private:
    std::atomic<long>* value_;
};

/// Writes to `mib` MiB of fresh memory.
void eat(std::size_t mib) {
    for (std::size_t i = 0; i < mib; ++i) {
        void* page = ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) ::_exit(112);
        for (int at = 0; at < 1 << 20; at += 4096) static_cast<std::atomic<char>*>(page)[at].store(1);
    }
}

enum class view { as_mounted, pure_v1, v1_without_freezer };

class cgroup_root : public ::testing::TestWithParam<view> {
protected:
    void SetUp() override {
        auto found = detect();
        ASSERT_TRUE(found) << found.error().message;
        if (GetParam() != view::as_mounted) {
            if (found->version() != version::v1) GTEST_SKIP() << "this machine has no v1 hierarchies";
            found->unified.clear();
        }
        if (GetParam() == view::v1_without_freezer)
            std::erase_if(found->v1,
                          [](const auto& mount) { return mount.controllers == std::vector<std::string>{"freezer"}; });
        tree_.emplace(*std::move(found));
    }

    void TearDown() override {
        if (!tree_) return;
        EXPECT_TRUE(tree_->kill_all(top_, within(5s)));
        EXPECT_TRUE(tree_->wait_empty(top_, within(5s)));
        const auto removed = tree_->remove(top_, within(5s));
        EXPECT_TRUE(removed) << removed.error().message;
        EXPECT_FALSE(tree_->exists(top_));
    }

    void create(const std::string& group, const limits& wanted = {}) {
        const auto made = tree_->create(group, wanted);
        ASSERT_TRUE(made) << made.error().message;
    }
    bool v2() const { return tree_->version() == version::v2; }
    std::string file(const std::string& group, const char* controller, const char* v1_name, const char* v2_name) const {
        const auto text = read_control(tree_->directory(group, controller) + "/" + (v2() ? v2_name : v1_name));
        return text ? *text : text.error().message;
    }

    std::optional<hierarchy> tree_;
    const std::string top_ = "/gantry-t" + std::to_string(::getpid());
};

INSTANTIATE_TEST_SUITE_P(, cgroup_root, ::testing::Values(view::as_mounted, view::pure_v1, view::v1_without_freezer),
                         [](const auto& info) {
                             return info.param == view::as_mounted ? "as_mounted"
                                    : info.param == view::pure_v1  ? "pure_v1"
                                                                   : "v1_without_freezer";
                         });

} // namespace

TEST_P(cgroup_root, makes_a_group_in_every_hierarchy_again_and_again) {
    const std::string pod = top_ + "/kubepods/burstable/pod1";
    for (int i = 0; i < 3; ++i) create(pod, {.pids_max = 10 + i});
    for (const auto& directory : directories(tree_->layout(), pod))
        EXPECT_EQ(::access(directory.c_str(), F_OK), 0) << directory;
    EXPECT_EQ(file(pod, "pids", "pids.max", "pids.max"), "12");
    EXPECT_EQ(*tree_->children(top_), std::vector<std::string>{"kubepods"});
    ASSERT_TRUE(tree_->remove(pod, within(1s)));
    ASSERT_TRUE(tree_->remove(pod, within(1s)));
    EXPECT_FALSE(tree_->exists(pod));
    EXPECT_TRUE(tree_->exists(top_ + "/kubepods/burstable"));
}

TEST_P(cgroup_root, makes_siblings_below_a_new_parent_at_once) {
    for (int round = 0; round < 20; ++round) {
        const std::string parent = top_ + "/new" + std::to_string(round);
        std::vector<result<void>> made(4);
        {
            std::vector<std::jthread> threads;
            for (std::size_t i = 0; i < made.size(); ++i)
                threads.emplace_back([&, i] {
                    made[i] = tree_->create(parent + "/x" + std::to_string(i), {.cpu_shares = 512, .pids_max = 5});
                });
        }
        for (const auto& one : made) EXPECT_TRUE(one) << one.error().message;
    }
}

TEST_P(cgroup_root, completes_a_group_that_a_crash_left_half_made) {
    create(top_ + "/a/b");
    const auto all = directories(tree_->layout(), top_ + "/a/b");
    ASSERT_EQ(::rmdir(all.back().c_str()), 0);
    create(top_ + "/a/b", {.pids_max = 3});
    for (const auto& directory : all) EXPECT_EQ(::access(directory.c_str(), F_OK), 0) << directory;
}

TEST_P(cgroup_root, refuses_paths_that_are_none) {
    for (const auto* group : {"", "/", "relative", "/a//b", "/a/", "/..", "/a/../b", "/a\nb"}) {
        const auto made = tree_->create(group, {});
        EXPECT_FALSE(made) << group;
        EXPECT_EQ(made.error().code, code::invalid) << group;
    }
}

TEST_P(cgroup_root, sets_every_kind_of_limit) {
    create(top_ + "/x", {.cpu_shares = 512,
                         .cpu_quota_us = 25'000,
                         .cpu_period_us = 50'000,
                         .memory_max = 64 << 20,
                         .swap_max = 0,
                         .pids_max = 33,
                         .cpuset_cpus = "0",
                         .cpuset_mems = "0"});
    const std::string x = top_ + "/x";
    EXPECT_EQ(file(x, "cpu", "cpu.shares", "cpu.weight"), v2() ? "20" : "512");
    if (v2()) {
        EXPECT_EQ(file(x, "cpu", "", "cpu.max"), "25000 50000");
    } else {
        EXPECT_EQ(file(x, "cpu", "cpu.cfs_quota_us", ""), "25000");
        EXPECT_EQ(file(x, "cpu", "cpu.cfs_period_us", ""), "50000");
    }
    EXPECT_EQ(file(x, "memory", "memory.limit_in_bytes", "memory.max"), std::to_string(64 << 20));
    EXPECT_EQ(file(x, "pids", "pids.max", "pids.max"), "33");
    EXPECT_EQ(file(x, "cpuset", "cpuset.cpus", "cpuset.cpus"), "0");
}

TEST_P(cgroup_root, moves_limits_up_and_down_whatever_was_there_before) {
    const std::string x = top_ + "/x";
    create(x, {.cpu_quota_us = 10'000, .memory_max = 32 << 20, .swap_max = 0});
    for (const std::int64_t mib : {128, 16, 64, 8, 512}) {
        const auto done = tree_->apply(x, {.cpu_quota_us = mib * 1000, .memory_max = mib << 20, .swap_max = 0});
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(file(x, "memory", "memory.limit_in_bytes", "memory.max"), std::to_string(mib << 20));
    }
    ASSERT_TRUE(tree_->apply(x, {.cpu_quota_us = unlimited, .memory_max = unlimited, .swap_max = unlimited}));
    EXPECT_EQ(file(x, "cpu", "cpu.cfs_quota_us", "cpu.max"), v2() ? "max 100000" : "-1");
}

TEST_P(cgroup_root, names_value_and_file_of_a_refused_limit) {
    create(top_ + "/x");
    const auto refused = tree_->apply(top_ + "/x", {.cpuset_cpus = "9999"});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("\"9999\""), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find("cpuset.cpus"), std::string::npos) << refused.error().message;
    const auto missing = tree_->apply(top_ + "/nobody", {.pids_max = 1});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, code::not_found);
}

TEST_P(cgroup_root, a_child_enters_every_hierarchy) {
    const std::string x = top_ + "/a/x";
    create(x);
    const member child(*tree_, x, sleep_forever);
    for (const auto& directory : directories(tree_->layout(), x))
        EXPECT_TRUE(becomes([&] {
            const auto procs = read_control(directory + "/cgroup.procs");
            return procs && *procs == std::to_string(child.pid());
        })) << directory;
    EXPECT_EQ(*tree_->processes(top_), std::vector<pid_t>{child.pid()});
}

TEST_P(cgroup_root, attaches_a_running_process) {
    create(top_ + "/x");
    create(top_ + "/y");
    const member child(*tree_, top_ + "/x", sleep_forever);
    // The child enters one hierarchy after another.
    for (const auto& directory : directories(tree_->layout(), top_ + "/x"))
        ASSERT_TRUE(becomes([&] {
            const auto procs = read_control(directory + "/cgroup.procs");
            return procs && *procs == std::to_string(child.pid());
        })) << directory;
    ASSERT_TRUE(tree_->attach(top_ + "/y", child.pid()));
    EXPECT_TRUE(tree_->processes(top_ + "/x")->empty());
    EXPECT_EQ(*tree_->processes(top_ + "/y"), std::vector<pid_t>{child.pid()});
}

TEST_P(cgroup_root, the_pids_limit_stops_fork) {
    create(top_ + "/x", {.pids_max = 5});
    member child(*tree_, top_ + "/x", [] {
        int made = 0;
        while (made < 20) {
            const pid_t pid = ::fork();
            if (pid == 0) sleep_forever();
            if (pid < 0) break;
            ++made;
        }
        return made;
    });
    EXPECT_EQ(WEXITSTATUS(child.wait()), 4);
}

TEST_P(cgroup_root, kills_a_fork_bomb_whole) {
    const std::string x = top_ + "/x";
    create(x, {.cpu_quota_us = 50'000, .pids_max = 60});
    const member bomb(*tree_, x, [] {
        for (;;)
            if (::fork() < 0) ::sched_yield();
        return 0;
    });
    ASSERT_TRUE(becomes([&] { return tree_->usage(x)->pids > 40; }));
    const auto killed = tree_->kill_all(x, within(20s));
    ASSERT_TRUE(killed) << killed.error().message;
    const auto empty = tree_->wait_empty(x, within(20s));
    ASSERT_TRUE(empty) << empty.error().message;
    const auto removed = tree_->remove(x, within(5s));
    EXPECT_TRUE(removed) << removed.error().message;
}

TEST_P(cgroup_root, kills_at_once_what_has_next_to_no_cpu_time) {
    const std::string x = top_ + "/pod/x";
    create(x, {.cpu_quota_us = 1'000, .cpu_period_us = 1'000'000}); // a page fault can take a second here
    shared_counter started;
    member child(*tree_, x, [&] {
        ++*started;
        eat(64); // memory to give back on exit
        return sleep_forever();
    });
    ASSERT_TRUE(becomes([&] { return *started == 1 && tree_->usage(x)->throttled_periods > 0; }));
    ASSERT_TRUE(tree_->kill_all(top_ + "/pod", within(30s)));
    child.wait();
    EXPECT_EQ(file(x, "cpu", "cpu.cfs_quota_us", "cpu.max"), v2() ? "max 1000000" : "-1");
}

TEST_P(cgroup_root, kills_what_sits_in_groups_below) {
    const std::string deep = top_ + "/pod/container/exec";
    create(deep);
    member child(*tree_, deep, sleep_forever);
    ASSERT_TRUE(becomes([&] { return tree_->processes(deep)->size() == 1; }));
    ASSERT_TRUE(tree_->kill_all(top_ + "/pod", within(5s)));
    const int status = child.wait();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ASSERT_TRUE(tree_->wait_empty(top_ + "/pod", within(5s)));
}

TEST_P(cgroup_root, freezes_thaws_and_kills_the_frozen) {
    if (GetParam() == view::v1_without_freezer) GTEST_SKIP() << "nothing to freeze with";
    const std::string x = top_ + "/x";
    create(x);
    shared_counter counter;
    member child(*tree_, x, [&] {
        for (;;) ++*counter;
        return 0;
    });
    ASSERT_TRUE(becomes([&] { return *counter > 0; }));
    const auto frozen = tree_->freeze(x, within(5s));
    ASSERT_TRUE(frozen) << frozen.error().message;
    const long at_freeze = *counter;
    ::usleep(20'000);
    EXPECT_EQ(*counter, at_freeze);
    ASSERT_TRUE(tree_->thaw(x));
    EXPECT_TRUE(becomes([&] { return *counter > at_freeze; }));

    ASSERT_TRUE(tree_->freeze(x, within(5s)));
    ASSERT_TRUE(tree_->kill_all(top_, within(5s)));
    const int status = child.wait();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST_P(cgroup_root, nothing_to_freeze_thaw_kill_or_remove_is_no_error_where_it_means_done) {
    EXPECT_TRUE(tree_->kill_all(top_ + "/nobody", within(1s)));
    EXPECT_TRUE(tree_->wait_empty(top_ + "/nobody", within(1s)));
    EXPECT_TRUE(tree_->remove(top_ + "/nobody", within(1s)));
    EXPECT_TRUE(tree_->thaw(top_ + "/nobody"));
    EXPECT_FALSE(tree_->freeze(top_ + "/nobody", within(1s)));
    EXPECT_EQ(tree_->usage(top_ + "/nobody").error().code, code::not_found);
}

TEST_P(cgroup_root, waits_for_the_last_exit_and_not_longer_than_asked) {
    const std::string x = top_ + "/x";
    create(x);
    const member child(*tree_, x, sleep_forever);
    ASSERT_TRUE(becomes([&] { return tree_->processes(x)->size() == 1; }));
    const auto early = tree_->wait_empty(x, within(30ms));
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code, code::timeout);
    ::kill(child.pid(), SIGKILL);
    EXPECT_TRUE(tree_->wait_empty(x, within(5s)));
}

TEST_P(cgroup_root, does_not_remove_a_group_in_use) {
    const std::string x = top_ + "/x";
    create(x);
    const member child(*tree_, x, sleep_forever);
    ASSERT_TRUE(becomes([&] { return tree_->processes(x)->size() == 1; }));
    const auto removed = tree_->remove(x, within(20ms));
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().code, code::busy);
    EXPECT_EQ(*tree_->processes(x), std::vector<pid_t>{child.pid()});
}

TEST_P(cgroup_root, counts_an_oom_kill_where_it_happened_and_above) {
    const std::string container = top_ + "/pod/c1";
    create(top_ + "/pod", {.memory_max = 64 << 20, .swap_max = 0});
    create(container, {.memory_max = 16 << 20, .swap_max = 0});
    create(top_ + "/pod/c2");
    EXPECT_EQ(*tree_->oom_kills(container), 0u);
    member hog(*tree_, container, [] {
        eat(200);
        return 0;
    });
    const int status = hog.wait();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    EXPECT_EQ(*tree_->oom_kills(container), 1u);
    EXPECT_EQ(tree_->usage(container)->oom_kills, 1u);
    EXPECT_EQ(tree_->usage(top_ + "/pod")->oom_kills, 1u);
    EXPECT_EQ(*tree_->oom_kills(top_ + "/pod"), 0u);
    EXPECT_EQ(tree_->usage(top_ + "/pod/c2")->oom_kills, 0u);
}

TEST_P(cgroup_root, accounts_cpu_memory_and_processes) {
    const std::string x = top_ + "/pod/x";
    create(x);
    shared_counter ready;
    const member child(*tree_, x, [&] {
        eat(20);
        for (long i = 0; i < 30'000'000; ++i) asm volatile("" : : "r"(i));
        *ready = 1;
        return sleep_forever();
    });
    ASSERT_TRUE(becomes([&] { return *ready == 1; }, 60s));
    for (const auto& group : {x, top_ + "/pod"}) // the kernel gathers its counters every two seconds
        EXPECT_TRUE(becomes([&] { return tree_->usage(group)->rss >= 19u << 20; }, 60s)) << group;
    const auto own = tree_->usage(x);
    const auto above = tree_->usage(top_ + "/pod");
    ASSERT_TRUE(own && above);
    for (const auto& used : {*own, *above}) {
        EXPECT_GT(used.cpu_ns, 1'000'000u);
        EXPECT_LT(used.cpu_ns, 60'000'000'000u);
        EXPECT_GE(used.cpu_user_ns + used.cpu_system_ns, used.cpu_ns / 2);
        EXPECT_GE(used.memory, 20u << 20);
        EXPECT_LT(used.memory, 100u << 20);
        EXPECT_GE(used.working_set, 20u << 20);
        EXPECT_LE(used.working_set, used.memory);
        EXPECT_GE(used.rss, 19u << 20);
        EXPECT_GE(used.memory_peak, used.working_set);
        EXPECT_EQ(used.pids, 1u);
        EXPECT_GE(used.page_faults, 20u);
    }
}

TEST_P(cgroup_root, refuses_a_memory_limit_below_the_usage) {
    const std::string x = top_ + "/x";
    create(x, {.memory_max = 64 << 20, .swap_max = 0});
    shared_counter ready;
    member child(*tree_, x, [&] {
        eat(30);
        *ready = 1;
        return sleep_forever();
    });
    ASSERT_TRUE(becomes([&] { return *ready == 1; }));
    const auto refused = tree_->apply(x, {.memory_max = 8 << 20});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, code::busy) << refused.error().message;
    EXPECT_EQ(::kill(child.pid(), 0), 0);
    EXPECT_EQ(*tree_->oom_kills(x), 0u);
}

TEST_P(cgroup_root, throttles_by_quota) {
    const std::string x = top_ + "/x";
    create(x, {.cpu_quota_us = 5'000, .cpu_period_us = 50'000});
    const member child(*tree_, x, [] {
        for (;;) asm volatile("");
        return 0;
    });
    EXPECT_TRUE(becomes([&] { return tree_->usage(x)->throttled_ns > 1'000'000; }));
}

TEST_P(cgroup_root, allows_only_the_devices_of_the_policy) {
    const std::string x = top_ + "/x";
    create(x);
    const device_rule deny_all{.allow = false};
    const device_rule null{.allow = true, .type = 'c', .major = 1, .minor = 3};
    const device_rule full{.allow = true, .type = 'c', .major = 1, .minor = 7, .access = "r"};
    // Bit 0: /dev/null read-write, 1: /dev/full read, 2: /dev/full read-write, 3: mknod of /dev/zero.
    const auto permitted = [&] {
        member probe(*tree_, x, [] {
            const auto can = [](const char* path, int flags) {
                const int fd = ::open(path, flags | O_CLOEXEC);
                return fd >= 0 && ::close(fd) == 0;
            };
            const int bits = (can("/dev/null", O_RDWR) ? 1 : 0) | (can("/dev/full", O_RDONLY) ? 2 : 0) |
                             (can("/dev/full", O_RDWR) ? 4 : 0);
            char node[64];
            ::snprintf(node, sizeof node, "/tmp/gantry-node-%d", ::getpid());
            const bool made = ::mknod(node, S_IFCHR | 0600, makedev(1, 5)) == 0;
            if (made) ::unlink(node);
            return bits | (made ? 8 : 0);
        });
        return WEXITSTATUS(probe.wait());
    };
    EXPECT_EQ(permitted(), 15);
    auto set = tree_->set_devices(x, {deny_all, null});
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(permitted(), 1);
    ASSERT_TRUE(tree_->set_devices(x, {deny_all, full}));
    EXPECT_EQ(permitted(), 2);
    ASSERT_TRUE(tree_->set_devices(x, {deny_all, null, full, {.allow = true, .type = 'c', .access = "m"}}));
    EXPECT_EQ(permitted(), 11);
    ASSERT_TRUE(tree_->set_devices(x, {{.allow = true}}));
    EXPECT_EQ(permitted(), 15);
}

TEST_P(cgroup_root, leaves_the_root_of_a_cgroup_namespace_to_enable_controllers) {
    if (!v2()) GTEST_SKIP() << "only v2 forbids processes beside controllers";
    const std::string inside = top_ + "/container";
    create(inside);
    member child(*tree_, inside, [&] {
        const char* point = "/tmp";
        if (::unshare(CLONE_NEWCGROUP | CLONE_NEWNS) != 0 ||
            ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("none", point, "cgroup2", 0, nullptr) != 0)
            return 1;
        layout own;
        own.unified = point;
        own.unified_controllers = {"cpu", "memory", "pids"};
        const hierarchy tree(own);
        if (const auto made = tree.create("/kubepods/pod1", {.pids_max = 5}); !made) {
            ::fprintf(stderr, "%s\n", made.error().message.c_str());
            return 2;
        }
        const auto procs = read_control(std::string(point) + "/gantry-self/cgroup.procs");
        if (!procs || *procs != std::to_string(::getpid())) return 3;
        return tree.remove("/kubepods", within(1s)) ? 0 : 4;
    });
    EXPECT_EQ(WEXITSTATUS(child.wait()), 0);
}

} // namespace gantry::cgroup
