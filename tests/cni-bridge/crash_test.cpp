// kill -9 before every single system call of a verb: what comes after must converge, and leak nothing.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cni-bridge/world.hpp"

namespace gantry::cni_bridge::test {
namespace {

/// Runs `prepare`, then `act`, in a child that dies by SIGKILL just before the n-th system call of `act` (of any of its
/// threads). False when `act` came to its end, having made fewer.
bool killed_at(int n, const std::function<void()>& prepare, const std::function<bool()>& act) {
    const pid_t child = ::fork();
    if (child == 0) {
        prepare();
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        ::raise(SIGSTOP);
        ::_exit(act() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSTOPPED(status));
    ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    int calls = 0;
    for (;;) {
        const pid_t stopped = ::waitpid(-1, &status, __WALL);
        if (stopped == child && (WIFEXITED(status) || WIFSIGNALED(status))) {
            EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << "the verb itself failed";
            return WIFSIGNALED(status);
        }
        if (!WIFSTOPPED(status)) continue; // a thread ended
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            __ptrace_syscall_info info{};
            ::ptrace(PTRACE_GET_SYSCALL_INFO, stopped, sizeof info, &info);
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY && ++calls == n) {
                ::kill(child, SIGKILL);
                continue;
            }
        }
        ::ptrace(PTRACE_SYSCALL, stopped, nullptr, nullptr);
    }
}

class crash : public world {
protected:
    /// For n = 1, 2, ... until `act` survives: a world where `prepare` has run is left by a killed `act`, then
    /// `converge`.
    static int at_every_step(const std::function<void()>& prepare, const std::function<bool()>& act,
                             const std::function<void()>& converge) {
        for (int n = 1;; ++n) {
            SCOPED_TRACE("killed before system call " + std::to_string(n));
            const bool killed = killed_at(n, prepare, act);
            converge();
            if (!killed || HasFailure()) return n;
        }
    }
    static std::vector<port_mapping> ports() { return {tcp(8080, 80), udp(5300, 53), tcp(8081, 81, "127.0.0.1")}; }
};

TEST_F(crash, start_is_completed_by_the_next_start) {
    std::unique_ptr<network> net;
    const int steps = at_every_step([&] { net = make(); }, [&] { return net->start().ok(); },
                                    [&] {
                                        const auto next = make();
                                        ASSERT_TRUE(next->start());
                                        ASSERT_TRUE(next->status());
                                        auto route = host->route();
                                        netlink::batch b;
                                        netlink::delete_link(b, next->link().name());
                                        ASSERT_TRUE(route.send(b));
                                        nft("flush ruleset");
                                    });
    EXPECT_GT(steps, 20);
}

TEST_F(crash, add_is_completed_by_its_replay_and_undone_by_a_del) {
    ASSERT_TRUE(make()->start());
    std::unique_ptr<network> net;
    std::optional<netns> pod;
    pod.emplace();
    const int steps = at_every_step(
        [&] {
            net = make();
            ASSERT_TRUE(net->start());
        },
        [&] { return net->add(request("a", *pod, ports()), no_steps).ok(); },
        [&] {
            const auto next = make();
            ASSERT_TRUE(next->start());
            const auto replayed = next->add(request("a", *pod, ports()), no_steps);
            ASSERT_TRUE(replayed) << replayed.error().message;
            const auto checked = next->check({"a", "eth0"}, pod->fd());
            ASSERT_TRUE(checked) << checked.error().message;
            ASSERT_TRUE(next->del({"a", "eth0"}, no_steps));
            ASSERT_EQ(leftovers(*next), std::vector<std::string>());
        });
    EXPECT_GT(steps, 20);
}

TEST_F(crash, add_that_is_never_replayed_is_freed_by_gc) {
    ASSERT_TRUE(make()->start());
    std::unique_ptr<network> net;
    const netns pod;
    at_every_step(
        [&] {
            net = make();
            ASSERT_TRUE(net->start());
        },
        [&] { return net->add(request("a", pod, ports()), no_steps).ok(); },
        [&] {
            const auto next = make();
            ASSERT_TRUE(next->start());
            ASSERT_TRUE(next->gc({}));
            ASSERT_EQ(leftovers(*next), std::vector<std::string>());
        });
}

TEST_F(crash, del_is_completed_by_its_replay) {
    const netns pod;
    add(*make(), "a", pod, ports());
    std::unique_ptr<network> net;
    const int steps = at_every_step(
        [&] {
            net = make();
            ASSERT_TRUE(net->start());
        },
        [&] {
            return net->del({"a", "eth0"}, no_steps).ok();
        },
        [&] {
            const auto next = make();
            ASSERT_TRUE(next->start());
            ASSERT_TRUE(next->del({"a", "eth0"}, no_steps));
            ASSERT_TRUE(next->delete_doomed());
            ASSERT_EQ(leftovers(*next), std::vector<std::string>());
            add(*next, "a", pod, ports());
        });
    EXPECT_GT(steps, 5);
}

} // namespace
} // namespace gantry::cni_bridge::test
