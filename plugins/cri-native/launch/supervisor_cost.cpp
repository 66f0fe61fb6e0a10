// What a supervisor costs: memory of an idle one with one container, and the times of start, exit and exec.
//   supervisor_cost [PODS]
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "plugins/cri-native/launch/testing.hpp"

namespace {

using namespace gantry::cri_native::launch;
using namespace gantry::cri_native::launch::testing;
using clock_type = std::chrono::steady_clock;

long rollup(pid_t pid, const std::string& field) {
    const std::string text = read_all("/proc/" + std::to_string(pid) + "/smaps_rollup");
    const auto at = text.find("\n" + field + ":");
    return at == std::string::npos ? -1 : std::atol(text.c_str() + at + field.size() + 2);
}

double ms_since(clock_type::time_point begin) {
    return std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
}

void print(const char* what, std::vector<double> values) {
    std::sort(values.begin(), values.end());
    std::printf("%-28s p50 %8.3f  p95 %8.3f  max %8.3f ms  (%zu)\n", what, values[values.size() / 2],
                values[values.size() * 95 / 100], values.back(), values.size());
}

container_plan sleeper(pod& p, const std::string& id) { return p.plan(id, {"/bin/busybox", "sleep", "100000"}); }

} // namespace

int main(int argc, char** argv) {
    const int pods = argc > 1 ? std::atoi(argv[1]) : 20;
    std::vector<std::unique_ptr<pod>> all;
    std::vector<double> spawn, create, start, exit_seen, exec_time;
    for (int i = 0; i < pods; ++i) {
        auto begin = clock_type::now();
        all.push_back(std::make_unique<pod>());
        spawn.push_back(ms_since(begin));
        pod& p = *all.back();
        const auto plan = sleeper(p, "c");
        begin = clock_type::now();
        if (auto made = p.create(plan); !made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
        create.push_back(ms_since(begin));
        begin = clock_type::now();
        if (auto started = p.start("c"); !started)
            return std::fprintf(stderr, "%s\n", started.error().message.c_str()), 1;
        start.push_back(ms_since(begin));
    }
    long pss = 0, dirty = 0, rss = 0;
    for (const auto& p : all) {
        pss += rollup(p->supervisor_pid(), "Pss");
        dirty += rollup(p->supervisor_pid(), "Private_Dirty");
        rss += rollup(p->supervisor_pid(), "Rss");
    }
    std::printf("%d supervisors, one idle container each: PSS %.1f KiB, private dirty %.1f KiB, RSS %.1f KiB each\n",
                pods, static_cast<double>(pss) / pods, static_cast<double>(dirty) / pods,
                static_cast<double>(rss) / pods);
    for (int i = 0; i < 100; ++i) {
        const auto begin = clock_type::now();
        const auto done = all[0]->exec("c", [] {
            exec_plan plan;
            plan.process.argv = {"/bin/busybox", "true"};
            return plan;
        }());
        if (!done) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;
        exec_time.push_back(ms_since(begin));
    }
    for (const auto& p : all) {
        const auto known = p->await<std::vector<container_info>>([&](auto done) { p->client().list(done); });
        const auto begin = clock_type::now();
        ::kill((*known)[0].pid, SIGKILL);
        p->wait_exit("c");
        exit_seen.push_back(ms_since(begin));
    }
    print("spawn to ready", spawn);
    print("create", create);
    print("start", start);
    print("exec, captured", exec_time);
    print("kill to exit event", exit_seen);
}
