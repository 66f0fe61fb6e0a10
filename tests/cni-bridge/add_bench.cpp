// ./dev bench network [--json]: what an ADD and a DEL of cni-bridge cost, thread hop included, in a host of its own.
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <future>
#include <thread>

#include "base/files.hpp"
#include "plugins/cni-bridge/service.hpp"

namespace gantry::cni_bridge {
namespace {

using milliseconds = std::chrono::duration<double, std::milli>;
using pods = std::vector<base::unique_fd>;

[[noreturn]] void die(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(1);
}

base::unique_fd current_netns() { return base::unique_fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)); }

pods make_pods(int count) {
    pods made;
    std::thread([&] {
        for (int i = 0; i < count; ++i) {
            if (::unshare(CLONE_NEWNET) != 0) die("unshare: needs root");
            made.push_back(current_netns());
        }
    }).join();
    return made;
}

struct figures {
    double p50 = 0, p99 = 0, total = 0;
};

figures summary(std::vector<double> times, double total) {
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], times[times.size() * 99 / 100], total};
}

class bench {
public:
    bench(const std::string& config, int run) : directory_("/tmp/gantry-cni-bench-XXXXXX") {
        if (::mkdtemp(directory_.data()) == nullptr) die("mkdtemp");
        auto parsed = parse_settings(config);
        if (!parsed) die(parsed.error().message);
        network::environment env{
            .who = {"bench" + std::to_string(run), "net"}, .state_dir = directory_, .seed = 0, .log = {}};
        auto started = service::start(*std::move(parsed), std::move(env), [](bool failed, std::string_view line) {
            if (failed) std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
        });
        if (!started) die(started.error().message);
        service_ = *std::move(started);
    }
    ~bench() {
        service_.reset();
        if (auto removed = base::remove_tree(directory_); !removed) die(removed.error().message);
    }

    figures add(const pods& all, int ports, bool parallel) {
        ++round_;
        return each(all, parallel, [this, ports](network& net, int i, int netns) -> result<void> {
            add_request request{.container_id = id_of(i), .ifname = "eth0", .pod = "bench/p", .netns = netns};
            for (int p = 0; p < ports; ++p)
                request.ports.push_back({IPPROTO_TCP, {}, static_cast<std::uint16_t>(10000 + i * ports + p), 80});
            const auto made = net.add(request, [](std::string_view) {});
            return made ? result<void>() : result<void>(made.error());
        });
    }
    figures del(const pods& all) {
        return each(all, false, [this](network& net, int i, int) {
            return net.del({id_of(i), "eth0"}, [](std::string_view) {});
        });
    }

private:
    /// As in life, no two pods share an id: a name that still waits for its removal would cost that removal.
    std::string id_of(int i) const { return "c" + std::to_string(round_) + "-" + std::to_string(i); }

    template <class F>
    figures each(const pods& all, bool parallel, F f) {
        std::vector<double> times(all.size());
        std::vector<std::future<void>> open;
        const auto begin = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < all.size(); ++i) {
            auto done = std::make_shared<std::promise<void>>();
            open.push_back(done->get_future());
            const auto submitted = std::chrono::steady_clock::now();
            service_->post([=, &times, netns = all[i].get()](network& net) {
                if (const auto outcome = f(net, static_cast<int>(i), netns); !outcome) die(outcome.error().message);
                times[i] = milliseconds(std::chrono::steady_clock::now() - submitted).count();
                done->set_value();
            });
            if (!parallel) open.back().wait();
        }
        for (auto& one : open) one.wait();
        return summary(std::move(times), milliseconds(std::chrono::steady_clock::now() - begin).count());
    }

    std::string directory_;
    int round_ = 0;
    std::unique_ptr<service> service_;
};

struct row {
    const char* key;
    const char* what;
    double value;
    double goal; ///< 0: none
};

std::vector<row> measure() {
    constexpr int count = 200;
    std::vector<row> rows;
    {
        bench b("{}", 1);
        // Namespaces live until the end: the kernel's teardown of one holds the same lock as an ADD.
        const auto all = make_pods(count);
        const auto sixteen = make_pods(16);
        const auto add = b.add(all, 0, false);
        const auto del = b.del(all);
        const auto at_once = b.add(sixteen, 0, true);
        rows.insert(rows.end(), {{"add_p50_ms", "ADD, p50", add.p50, 1.5},
                                 {"add_p99_ms", "ADD, p99", add.p99, 0},
                                 {"del_p50_ms", "DEL, p50", del.p50, 1.0},
                                 {"del_p99_ms", "DEL, p99", del.p99, 0},
                                 {"add_16_ms", "16 ADDs at once, all done", at_once.total, 0}});
    }
    {
        bench b(R"({"subnet": "10.89.0.0/16", "subnet6": "fd89::/64"})", 2);
        const auto all = make_pods(count);
        const auto add = b.add(all, 0, false);
        b.del(all);
        rows.push_back({"add_dual_p50_ms", "ADD, dual-stack, p50", add.p50, 0});
        const auto more = make_pods(count);
        const auto ports = b.add(more, 2, false);
        rows.push_back({"add_ports_p50_ms", "ADD, dual-stack with two host ports, p50", ports.p50, 0});
    }
    return rows;
}

} // namespace
} // namespace gantry::cni_bridge

int main(int argc, char** argv) {
    if (::unshare(CLONE_NEWNET) != 0) gantry::cni_bridge::die("unshare: needs root");
    const auto rows = gantry::cni_bridge::measure();
    const bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
    if (json) std::printf("{");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto& r = rows[i];
        if (json) {
            std::printf("%s\"%s\": %.4f", i == 0 ? "" : ", ", r.key, r.value);
            continue;
        }
        std::printf("%-42s %8.3f ms", r.what, r.value);
        if (r.goal > 0)
            std::printf("   goal <= %.1f ms  %s", r.goal,
                        r.value <= r.goal       ? "met"
                        : r.value <= 2 * r.goal ? "within twice"
                                                : "MISSED");
        std::printf("\n");
    }
    if (json) std::printf("}\n");
    return 0;
}
