#include "core/kernel/node_fixture.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json.hpp>

#include "base/files.hpp"
#include "gantry/model/json.hpp"

namespace gantry::core::testing {

namespace asio = boost::asio;
namespace json = boost::json;
using namespace std::chrono_literals;

node_test::node_test() {
    char name[] = "/tmp/gantry-kernel-XXXXXX";
    dir = ::mkdtemp(name);
    options.name = "edge-1";
    options.state_dir = dir + "/state";
    options.log_dir = dir + "/logs";
    options.resolv_conf = dir + "/resolv.conf";
    options.host_ip = "192.0.2.1";
    options.restart_backoff = {.base = 40ms, .limit = 200ms, .reset = 10s};
    options.pull_backoff = options.restart_backoff;
    EXPECT_TRUE(base::write_file_atomic(options.resolv_conf, "nameserver 192.0.2.53\n"));

    source.streams.insert("watch");
    const auto uid_of = [](const std::string& bytes) {
        return std::string(json::parse(bytes).at("uid").as_string());
    };
    resources.on["capacity"] = [](const std::string&) {
        return std::string(R"({"capacity": {"cpuMilli": 2000, "memory": 1073741824, "pods": 110},
                               "allocatable": {"cpuMilli": 2000, "memory": 1073741824, "pods": 110,
                                               "ephemeralStorage": 1073741824}, "cgroup": {"version": 1}})");
    };
    resources.on["ensure_pod"] = [this, uid_of](const std::string& bytes) {
        cgroups.insert(uid_of(bytes));
        return R"({"cgroupParent": "/gantry-t/kubepods/pod)" + uid_of(bytes) + "\"}";
    };
    resources.on["remove_pod"] = [this, uid_of](const std::string& bytes) {
        cgroups.erase(uid_of(bytes));
        return std::string("{}");
    };
    resources.on["list_pods"] = [this](const std::string&) {
        json::array pods;
        for (const auto& uid : cgroups) pods.push_back(json::object{{"uid", uid}});
        return json::serialize(json::object{{"pods", pods}});
    };
}

node_test::~node_test() {
    crash();
    (void)base::remove_tree(dir);
}

void node_test::boot() {
    node_clients clients;
    clients.runtimes.push_back({"", &runtime, &runtime});
    clients.resources = &resources;
    clients.pod_sources.push_back(&source);
    node = std::make_unique<core::node>(io, options, std::move(clients));
    bool started = false;
    asio::co_spawn(io, node->start(), [&](std::exception_ptr, result<void> outcome) {
        EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
        started = true;
    });
    ASSERT_TRUE(until([&] { return started && source.streaming("watch") && runtime.streaming("get_container_events"); }));
}

void node_test::crash() {
    if (!node) return;
    bool stopped = false;
    asio::co_spawn(io, node->stop(), [&](std::exception_ptr) { stopped = true; });
    EXPECT_TRUE(until([&] { return stopped; })) << "the node does not stop";
    settle();
    node.reset();
}

bool node_test::until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!done()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        io.restart();
        io.run_one_for(20ms);
    }
    return true;
}

void node_test::settle() {
    // File work answers from another thread: two quiet turns in a row mean that nothing is under way.
    for (int quiet = 0; quiet < 2;) {
        io.restart();
        quiet = io.run_one_for(10ms) == 0 ? quiet + 1 : 0;
    }
}

std::string node_test::pod_json(const std::string& name, const std::string& uid, const std::string& spec) {
    return R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ")" + name + R"(", "namespace": "ns", "uid": ")" +
           uid + R"("}, "spec": )" + spec + "}";
}

std::string node_test::status(const std::string& name) const {
    for (const auto& pod : node->pods())
        if (pod.name == name) return pod.status;
    return {};
}

model::pod_status node_test::full_status(const std::string& name) const {
    const auto text = node->pod_json("ns", name);
    if (!text) return {};
    model::field_errors errors;
    return model::pod_from_json(json::parse(*text), errors).status;
}

bool node_test::ready(const std::string& name) const {
    const auto s = full_status(name);
    return std::any_of(s.conditions.begin(), s.conditions.end(),
                       [](const auto& c) { return c.type == "Ready" && c.status == "True"; });
}

std::vector<std::string> node_test::events(const std::string& uid) const {
    std::vector<std::string> out;
    for (const auto& e : node->events(uid)) out.push_back((e.warning ? "Warning " : "Normal ") + e.reason + ": " + e.message);
    return out;
}

bool node_test::has_event(const std::string& uid, const std::string& text) const {
    const auto all = events(uid);
    return std::find(all.begin(), all.end(), text) != all.end();
}

} // namespace gantry::core::testing
