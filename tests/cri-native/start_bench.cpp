// cri_native_bench [PODS]: what one pod costs on an otherwise idle node: RunPodSandbox + CreateContainer +
// StartContainer one after another, then exec, then all pods at once. Prints milliseconds; the network peer only raises
// loopback.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/cri-native/harness.hpp"

namespace {

using namespace gantry::cri_native::testing;
using clock_type = std::chrono::steady_clock;

double milliseconds(clock_type::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

struct series {
    const char* name;
    std::vector<double> values{};

    void add(clock_type::time_point since) { values.push_back(milliseconds(clock_type::now() - since)); }
    void print() {
        std::sort(values.begin(), values.end());
        const auto at = [&](double share) {
            return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
        };
        std::printf("%-24s p50 %7.2f  p90 %7.2f  p99 %7.2f  max %7.2f ms\n", name, at(0.5), at(0.9), at(0.99),
                    values.back());
    }
};

template <class T>
T checked(gantry::result<T> outcome) {
    if (!outcome) {
        std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return *std::move(outcome);
}

void one_by_one(node& n, int count) {
    series run{"RunPodSandbox"}, create{"CreateContainer"}, start{"StartContainer"}, all{"pod, all three"},
        exec{"ExecSync true"}, remove{"RemovePodSandbox"};
    for (int i = 0; i < count; ++i) {
        const auto begun = clock_type::now();
        const auto pod = checked(n.run_pod(n.pod("p" + std::to_string(i))));
        run.add(begun);
        auto config = n.shell("c", "exec sleep 100000");
        config.mutable_linux()->mutable_security_context()->mutable_seccomp();
        const auto before_create = clock_type::now();
        const auto id = checked(n.create(pod, config));
        create.add(before_create);
        const auto before_start = clock_type::now();
        checked(n.start_container(id));
        start.add(before_start);
        all.add(begun);
        const auto before_exec = clock_type::now();
        checked(n.exec(id, {"true"}));
        exec.add(before_exec);
        const auto before_remove = clock_type::now();
        checked(n.remove_pod(pod));
        remove.add(before_remove);
    }
    for (auto* one : {&run, &create, &start, &all, &exec, &remove}) one->print();
}

void all_at_once(node& n, int count) {
    const auto begun = clock_type::now();
    std::vector<node::op> open;
    for (int i = 0; i < count; ++i) {
        cri::RunPodSandboxRequest request;
        *request.mutable_config() = n.pod("q" + std::to_string(i));
        open.push_back(n.begin(n.runtime().run_pod_sandbox, request.SerializeAsString()));
    }
    std::vector<std::string> pods;
    for (const auto op : open) {
        cri::RunPodSandboxResponse response;
        response.ParseFromString(checked(n.wait(op)));
        pods.push_back(response.pod_sandbox_id());
    }
    open.clear();
    for (const auto& pod : pods) {
        cri::CreateContainerRequest request;
        request.set_pod_sandbox_id(pod);
        *request.mutable_config() = n.shell("c", "exec sleep 100000");
        open.push_back(n.begin(n.runtime().create_container, request.SerializeAsString()));
    }
    std::vector<std::string> containers;
    for (const auto op : open) {
        cri::CreateContainerResponse response;
        response.ParseFromString(checked(n.wait(op)));
        containers.push_back(response.container_id());
    }
    open.clear();
    for (const auto& id : containers) {
        cri::StartContainerRequest request;
        request.set_container_id(id);
        open.push_back(n.begin(n.runtime().start_container, request.SerializeAsString()));
    }
    for (const auto op : open) checked(n.wait(op));
    std::printf("%d pods at once           %.0f ms\n", count, milliseconds(clock_type::now() - begun));
    const auto before = clock_type::now();
    checked(n.restart());
    checked(n.call<cri::ListPodSandboxResponse>(n.runtime().list_pod_sandbox, cri::ListPodSandboxRequest{}));
    std::printf("restart with %d pods      %.0f ms until the first answer\n", count,
                milliseconds(clock_type::now() - before));
}

} // namespace

int main(int argc, char** argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 50;
    node n;
    one_by_one(n, count);
    all_at_once(n, count);
    return 0;
}
