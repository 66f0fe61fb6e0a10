// Helpers that plugins start through gantry.exec/1: real processes in cgroups of their own.
#include <signal.h>

#include <fstream>
#include <thread>

#include "tests/host/host_fixture.hpp"

namespace gantry::core {
namespace {

using namespace std::chrono_literals;

class plugin_helpers : public host_fixture {
protected:
    void SetUp() override {
        host_fixture::SetUp();
        add("mis");
        start();
    }
    /// The process in the file is gone or a zombie.
    static bool ended(const std::string& pid_file) {
        std::ifstream in(pid_file);
        std::string pid;
        in >> pid;
        std::ifstream stat("/proc/" + pid + "/stat");
        std::string number, name, state;
        if (!(stat >> number >> name >> state)) return !pid.empty();
        return state == "Z";
    }
    std::string cgroup_of_helpers() {
        for (const auto* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"}) {
            const auto dir = std::string(mount) + "/gantry-" + options_.config.node.instance + "/helpers";
            if (::access(dir.c_str(), F_OK) == 0) return dir;
        }
        return {};
    }
};

TEST_F(plugin_helpers, report_how_they_ended) {
    EXPECT_EQ(call("sh exit 3"), "status " + std::to_string(3 << 8));
    EXPECT_EQ(call("sh kill -9 $$"), "status 9");
}

TEST_F(plugin_helpers, have_only_what_they_were_given) {
    const auto out = dir_ + "/out";
    EXPECT_EQ(call("sh env | sort > " + out + "; ls -l /proc/$$/fd >> " + out + "; pwd >> " + out + "; grep SigBlk /proc/self/status >> " + out), "status 0");
    const auto text = base::read_file(out).value();
    EXPECT_EQ(text.find("HOME="), std::string::npos) << text;
    EXPECT_NE(text.find("PATH=/usr/bin:/bin\n"), std::string::npos) << text;
    EXPECT_NE(text.find("0 -> /dev/null"), std::string::npos) << text;
    EXPECT_EQ(text.find("socket:"), std::string::npos) << text;
    EXPECT_EQ(text.find("eventpoll"), std::string::npos) << text;
    EXPECT_NE(text.find("\n/\n"), std::string::npos) << text;
    EXPECT_NE(text.find("SigBlk:\t0000000000000000"), std::string::npos) << text;
}

TEST_F(plugin_helpers, live_in_a_cgroup_of_their_own) {
    ASSERT_FALSE(cgroup_of_helpers().empty());
    const auto out = dir_ + "/out";
    EXPECT_EQ(call("sh cat /proc/$$/cgroup > " + out), "status 0");
    EXPECT_NE(base::read_file(out).value().find("/gantry-" + options_.config.node.instance + "/helpers/mis-1"), std::string::npos);
    EXPECT_TRUE(eventually([&] { // the cgroup is removed after the helper
        const auto entries = base::list_dir(cgroup_of_helpers()).value();
        return std::find(entries.begin(), entries.end(), "mis-1") == entries.end();
    }));
}

TEST_F(plugin_helpers, die_with_their_whole_tree_at_the_deadline) {
    const auto pids = dir_ + "/escaped";
    // A grandchild in a session of its own: no process group reaches it.
    EXPECT_EQ(call("sh setsid sh -c 'echo $$ > " + pids + "; exec sleep 1000' & sleep 1000", 1s), "status 9 timed out");
    EXPECT_TRUE(eventually([&] { return ended(pids); }));
}

TEST_F(plugin_helpers, leave_no_children_behind_when_they_exit) {
    const auto pids = dir_ + "/left";
    EXPECT_EQ(call("sh setsid sh -c 'echo $$ > " + pids + "; exec sleep 1000' & while ! [ -s " + pids + " ]; do sleep 0.01; done"), "status 0");
    EXPECT_TRUE(eventually([&] { return ended(pids); }));
}

TEST_F(plugin_helpers, end_when_the_plugin_stops) {
    const auto pids = dir_ + "/running";
    spawn_call("sh echo $$ > " + pids + "; exec sleep 1000", [](const result<op_reply>&) {});
    EXPECT_TRUE(eventually([&] { return ::access(pids.c_str(), F_OK) == 0 && !base::read_file(pids).value().empty(); }));
    wait(host_->stop(100ms));
    EXPECT_TRUE(ended(pids));
    const auto dir = cgroup_of_helpers();
    host_.reset();
    EXPECT_NE(::access(dir.c_str(), F_OK), 0) << dir << " is left behind";
}

} // namespace
} // namespace gantry::core
