// Plugins that bring the node down, and the node's next start. Each node is a process of its own.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/unique_fd.hpp"

extern char** environ;

namespace gantry::core {
namespace {

struct ending {
    int signal = 0;
    int status = 0;
    std::string output{};
};

class crashes : public testing::Test {
protected:
    void SetUp() override {
        char pattern[] = "/tmp/gantry-crash-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern), nullptr);
        dir_ = pattern;
    }
    void TearDown() override { EXPECT_TRUE(base::remove_tree(dir_)); }

    pid_t launch(const std::string& init, const std::string& operation, base::unique_fd& output) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
        output.reset(ends[0]);
        const std::string instance = "t" + std::to_string(::getpid());
        std::vector<std::string> words{GANTRY_TEST_VICTIM, dir_ + "/state", dir_ + "/run", instance, init, operation};
        std::vector<char*> argv;
        for (auto& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        ::posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
        pid_t pid = -1;
        EXPECT_EQ(::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ), 0);
        ::posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
        return pid;
    }

    static ending finish(pid_t pid, const base::unique_fd& output) {
        ending end;
        char buffer[4096];
        for (ssize_t n; (n = ::read(output.get(), buffer, sizeof buffer)) > 0;) end.output.append(buffer, static_cast<std::size_t>(n));
        int status = 0;
        ::waitpid(pid, &status, 0);
        if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
        else end.status = WEXITSTATUS(status);
        return end;
    }

    ending node(const std::string& init, const std::string& operation = "") {
        base::unique_fd output;
        const auto pid = launch(init, operation, output);
        return finish(pid, output);
    }

    void expect_quarantined(const std::string& reason) {
        const auto next = node("", "hello");
        EXPECT_EQ(next.signal, 0) << next.output;
        EXPECT_NE(next.output.find("mis: quarantined mis is quarantined: " + reason), std::string::npos) << next.output;
        EXPECT_NE(next.output.find("good: active"), std::string::npos) << next.output;
        EXPECT_NE(next.output.find("op: mis is quarantined: "), std::string::npos) << next.output;
    }

    std::string dir_;
};

#define EXPECT_SAYS(end, text) EXPECT_NE((end).output.find(text), std::string::npos) << (end).output

TEST_F(crashes, in_init_quarantine_the_plugin_at_the_next_start) {
    const auto first = node("segv");
    EXPECT_EQ(first.signal, SIGSEGV) << first.output;
    EXPECT_SAYS(first, "gantry: plugin mis ended the node by SIGSEGV in init\n");
    expect_quarantined("the node ended while this plugin (com.acme.mischief, sha256 ");
    expect_quarantined("the node ended while this plugin (com.acme.mischief, sha256 "); // it stays
    const auto enabled = node("enable", "hello");
    EXPECT_SAYS(enabled, "enable: ok\n");
    EXPECT_SAYS(enabled, "mis: active");
    EXPECT_SAYS(enabled, "op: hello\n");
    const auto after = node("", "hello");
    EXPECT_SAYS(after, "mis: active");
}

TEST_F(crashes, of_every_kind_are_attributed) {
    const struct {
        const char* operation;
        int signal;
        const char* record;
    } kinds[] = {
        {"segv", SIGSEGV, "gantry: plugin mis ended the node by SIGSEGV in run\n"},
        {"abort", SIGABRT, "gantry: plugin mis ended the node by SIGABRT in run\n"},
        {"stack", SIGSEGV, "gantry: plugin mis ended the node by SIGSEGV in run\n"},
        {"worker-segv", SIGSEGV, "gantry: plugin mis ended the node by SIGSEGV in worker\n"},
        {"thread-segv", SIGSEGV, "gantry: plugin mis ended the node by SIGSEGV in own-thread\n"},
    };
    for (const auto& kind : kinds) {
        const auto end = node("", kind.operation);
        EXPECT_EQ(end.signal, kind.signal) << kind.operation << ": " << end.output;
        EXPECT_SAYS(end, kind.record) << kind.operation;
        ASSERT_TRUE(base::remove_tree(dir_ + "/state"));
    }
}

TEST_F(crashes, exit_is_one_too) {
    const auto end = node("", "exit");
    EXPECT_EQ(end.status, 1) << end.output;
    EXPECT_SAYS(end, "gantry: plugin mis ended the node by exit in run\n");
}

TEST_F(crashes, three_within_a_minute_quarantine) {
    for (int i = 0; i < 3; ++i) {
        const auto end = node("", "segv");
        EXPECT_EQ(end.signal, SIGSEGV) << end.output;
        EXPECT_SAYS(end, "mis: active");
    }
    expect_quarantined("it ended the node 3 times within 60 s, last by SIGSEGV in run");
}

TEST_F(crashes, a_kill_during_init_counts_as_its_mark_says) {
    base::unique_fd output;
    const auto pid = launch("pause", "", output);
    const auto mark = dir_ + "/state/t" + std::to_string(::getpid()) + "/host/loading";
    const auto marked = [&] { // the other plugin's mark comes and goes before
        const auto text = base::read_file(mark, 4096);
        return text && text->starts_with("loading mis ");
    };
    for (int i = 0; i < 2000 && !marked(); ++i) ::usleep(5000);
    ::kill(pid, SIGKILL);
    EXPECT_EQ(finish(pid, output).signal, SIGKILL);
    expect_quarantined("the node ended while this plugin");
}

TEST_F(crashes, of_foreign_libraries_are_attributed_too) {
    const struct {
        const char* use;
        int signal; ///< 0: it exits with 1
        const char* record;
        bool at_once; ///< quarantined after the first time
    } kinds[] = {
        {"use bad-segv-constructor", SIGSEGV, "gantry: plugin mis ended the node by SIGSEGV in load\n", true},
        {"use bad-segv-init", SIGSEGV, "gantry: plugin mis ended the node by SIGSEGV in init\n", true},
        {"use bad-segv-op", SIGSEGV, "gantry: plugin mis ended the node by SIGSEGV in add\n", false},
        {"use bad-aborts", SIGABRT, "gantry: plugin mis ended the node by SIGABRT in add\n", false},
        {"use bad-exits", 0, "gantry: plugin mis ended the node by exit in add\n", false},
    };
    for (const auto& kind : kinds) {
        for (int round = 0; round < (kind.at_once ? 1 : 3); ++round) {
            const auto end = node(kind.use, "{}");
            EXPECT_EQ(end.signal, kind.signal) << kind.use << ": " << end.output;
            EXPECT_EQ(end.status, kind.signal == 0 ? 1 : 0) << kind.use;
            EXPECT_SAYS(end, kind.record) << kind.use;
        }
        const auto next = node(kind.use, "{}");
        EXPECT_EQ(next.signal, 0) << next.output;
        EXPECT_SAYS(next, "mis: quarantined ");
        EXPECT_SAYS(next, "good: active");
        ASSERT_TRUE(base::remove_tree(dir_ + "/state"));
    }
}

TEST_F(crashes, a_node_that_ends_in_order_leaves_no_mark) {
    for (int i = 0; i < 4; ++i) {
        const auto end = node("", "hello");
        EXPECT_EQ(end.status, 0);
        EXPECT_SAYS(end, "op: hello\n");
    }
}

} // namespace
} // namespace gantry::core
