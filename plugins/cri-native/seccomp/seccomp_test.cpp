#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/cri-native/seccomp/profile.hpp"

namespace gantry::seccomp {
namespace {

/// Runs f in a process under the filter; gives what f returns (0 to 250), or -signal.
int under(const std::string& filter, const std::function<int()>& f) {
    const pid_t child = ::fork();
    if (child == 0) {
        sock_fprog program{static_cast<unsigned short>(filter.size() / sizeof(sock_filter)),
                           reinterpret_cast<sock_filter*>(const_cast<char*>(filter.data()))};
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            ::_exit(251);
        ::_exit(f());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// 0 when the call worked or failed for its arguments, else the errno it was refused with.
template <class... Args>
std::function<int()> calling(long number, Args... args) {
    return [=] { return ::syscall(number, args...) < 0 ? errno : 0; };
}

class default_seccomp : public testing::Test {
protected:
    static std::string filter(std::uint64_t capabilities = 0) {
        const auto made = compile(default_profile(capabilities));
        EXPECT_TRUE(made) << (made ? "" : made.error().message);
        return made ? *made : "";
    }
};

TEST_F(default_seccomp, allows_what_programs_do) {
    const auto code_bytes = filter();
    EXPECT_LT(code_bytes.size() / sizeof(sock_filter), 4096u);
    EXPECT_EQ(under(code_bytes, calling(SYS_getpid)), 0);
    EXPECT_EQ(under(code_bytes, calling(SYS_socket, AF_INET, SOCK_STREAM, 0)), 0);
    EXPECT_EQ(under(code_bytes, calling(SYS_openat, AT_FDCWD, "/", O_RDONLY)), 0);
    EXPECT_EQ(under(code_bytes, calling(SYS_personality, 0xffffffffL)), 0);
    EXPECT_EQ(under(code_bytes, [] { return ::fork() < 0 ? errno : 0; }), 0);
}

TEST_F(default_seccomp, refuses_what_acts_on_the_node) {
    const auto code_bytes = filter();
    EXPECT_EQ(under(code_bytes, calling(SYS_mount, 0, 0, 0, 0, 0)), EPERM);
    EXPECT_EQ(under(code_bytes, calling(SYS_unshare, CLONE_NEWUSER)), EPERM);
    EXPECT_EQ(under(code_bytes, calling(SYS_keyctl, 0, 0)), EPERM);
    EXPECT_EQ(under(code_bytes, calling(SYS_bpf, 0, 0, 0)), EPERM);
    EXPECT_EQ(under(code_bytes, calling(SYS_reboot, 0, 0, 0, 0)), EPERM);
    EXPECT_EQ(under(code_bytes, calling(SYS_setns, -1, 0)), EPERM);
    EXPECT_EQ(under(code_bytes, calling(425 /* io_uring_setup */, 1, 0)), EPERM);
    EXPECT_EQ(under(code_bytes, calling(SYS_personality, ADDR_NO_RANDOMIZE)), EPERM);
}

TEST_F(default_seccomp, refuses_new_namespaces_but_no_threads) {
    const auto code_bytes = filter();
    EXPECT_EQ(under(code_bytes, calling(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)), EPERM);
    EXPECT_EQ(under(code_bytes, calling(SYS_clone3, 0, 0)), ENOSYS); // so that the C library uses clone
}

TEST_F(default_seccomp, refuses_families_that_leave_the_pod) {
    const auto code_bytes = filter();
    EXPECT_EQ(under(code_bytes, calling(SYS_socket, AF_ALG, SOCK_SEQPACKET, 0)), EPERM);
    EXPECT_EQ(under(code_bytes, calling(SYS_socket, AF_VSOCK, SOCK_STREAM, 0)), EPERM);
    EXPECT_NE(under(code_bytes, calling(SYS_socket, AF_NETLINK, SOCK_RAW, 0)), EPERM);
}

TEST_F(default_seccomp, answers_enosys_to_calls_of_the_future) {
    EXPECT_EQ(under(filter(), calling(5000)), ENOSYS);
    EXPECT_EQ(under(filter(), calling(451 /* cachestat */, -1, 0, 0, 0)), EBADF);
    EXPECT_EQ(under(filter(), calling(459 /* lsm_get_self_attr */, 0, 0, 0, 0)), EPERM);
}

TEST_F(default_seccomp, gives_some_back_with_capabilities) {
    EXPECT_EQ(under(filter(), calling(SYS_chroot, "/nonexistent")), EPERM);
    EXPECT_EQ(under(filter(1ull << CAP_SYS_CHROOT), calling(SYS_chroot, "/nonexistent")), ENOENT);
    const auto admin = filter(1ull << CAP_SYS_ADMIN);
    EXPECT_NE(under(admin, calling(SYS_clone3, 0, 0)), ENOSYS);
    EXPECT_EQ(under(admin, calling(SYS_mount, 0, 0, 0, 0, 0)) == 0, false);
    EXPECT_EQ(under(admin, calling(SYS_setns, -1, 0)), EBADF);
}

profile parsed(std::string_view json, std::uint64_t capabilities = 0) {
    const auto made = parse_profile(json, capabilities);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? *made : profile{};
}

TEST(seccomp_profile, compiles_an_operators_profile) {
    const auto made = parsed(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
        {"names":["getppid"],"action":"SCMP_ACT_ERRNO","errnoRet":77},
        {"names":["nosuchcall"],"action":"SCMP_ACT_ERRNO"},
        {"names":["kill"],"action":"SCMP_ACT_KILL_PROCESS","args":[{"index":1,"value":10,"op":"SCMP_CMP_EQ"}]}]})");
    const auto filter = compile(made);
    ASSERT_TRUE(filter);
    EXPECT_EQ(under(*filter, calling(SYS_getppid)), 77);
    EXPECT_EQ(under(*filter, calling(SYS_kill, 0x7fffffff, 0)), ESRCH);
    EXPECT_EQ(under(*filter, calling(SYS_kill, 0x7fffffff, 10)), -SIGSYS);
}

TEST(seccomp_profile, reads_alternatives_on_one_argument) {
    const auto filter = compile(parsed(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
        {"name":"personality","action":"SCMP_ACT_ERRNO","args":[
            {"index":0,"value":1,"op":"SCMP_CMP_EQ"},{"index":0,"value":2,"op":"SCMP_CMP_EQ"}]}]})"));
    ASSERT_TRUE(filter);
    EXPECT_EQ(under(*filter, calling(SYS_personality, 2)), EPERM);
    EXPECT_EQ(under(*filter, calling(SYS_personality, 0xffffffffL)), 0);
}

TEST(seccomp_profile, applies_conditions_on_capabilities) {
    constexpr std::string_view json = R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":[
        {"names":["chroot"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_SYS_CHROOT"]}},
        {"names":["clone3"],"action":"SCMP_ACT_ERRNO","excludes":{"caps":["CAP_SYS_ADMIN"]}},
        {"names":["reboot"],"action":"SCMP_ACT_ALLOW","includes":{"arches":["nosuch"]}}]})";
    EXPECT_EQ(parsed(json).rules.size(), 1u);
    EXPECT_EQ(parsed(json, 1ull << CAP_SYS_CHROOT | 1ull << CAP_SYS_ADMIN).rules.size(), 1u);
    EXPECT_EQ(parsed(json, 1ull << CAP_SYS_CHROOT).rules.size(), 2u);
}

TEST(seccomp_profile, says_what_is_wrong_where) {
    const auto message = [](std::string_view json) {
        const auto made = parse_profile(json, 0);
        return made ? std::string("(accepted)") : made.error().message;
    };
    EXPECT_THAT(message("{"), testing::HasSubstr("seccomp profile"));
    EXPECT_THAT(message(R"({"defaultAction":"ALLOW"})"), testing::HasSubstr("\"ALLOW\""));
    EXPECT_THAT(message(R"({"defaultAction":"SCMP_ACT_NOTIFY"})"), testing::HasSubstr("agent"));
    EXPECT_THAT(
        message(
            R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["x"],"action":"SCMP_ACT_KILL"},{"action":"SCMP_ACT_KILL"}]})"),
        testing::HasSubstr("syscalls[1]"));
    EXPECT_THAT(
        message(
            R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["x"],"action":"SCMP_ACT_KILL","args":[{"index":6}]}]})"),
        testing::HasSubstr("args.index"));
}

} // namespace
} // namespace gantry::seccomp
