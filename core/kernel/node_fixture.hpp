// A whole kernel on fake plugins, in a directory of its own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "core/kernel/fake_plugins.hpp"
#include "core/kernel/node.hpp"

namespace gantry::core::testing {

class node_test : public ::testing::Test {
protected:
    node_test();
    ~node_test() override;

    /// A node on the same plugins and directories as before.
    void boot();
    /// Leaves everything as it is, as kill -9 would.
    void crash();
    /// Turns the loop until done() or a deadline.
    bool until(const std::function<bool()>& done);
    /// Turns the loop until nothing is left to do at once.
    void settle();

    /// pod of one busybox container "c", unless spec says otherwise.
    static std::string pod_json(const std::string& name, const std::string& uid, const std::string& spec = default_spec);
    void add(const std::string& pod) { source.send("watch", R"({"type": "ADD", "pod": )" + pod + "}"); }
    void update(const std::string& pod) { source.send("watch", R"({"type": "UPDATE", "pod": )" + pod + "}"); }
    void remove(const std::string& pod) { source.send("watch", R"({"type": "REMOVE", "pod": )" + pod + "}"); }
    void synced() { source.send("watch", R"({"type": "SYNCED"})"); }

    /// As kubectl's STATUS column has it; empty when there is no such pod.
    std::string status(const std::string& name) const;
    bool ready(const std::string& name) const;
    model::pod_status full_status(const std::string& name) const;
    /// "Warning BackOff: message" of one pod, in order.
    std::vector<std::string> events(const std::string& uid) const;
    bool has_event(const std::string& uid, const std::string& text) const;

    static constexpr const char* default_spec =
        R"({"terminationGracePeriodSeconds": 3, "containers": [{"name": "c", "image": "busybox:1"}]})";

    std::string dir;
    boost::asio::io_context io;
    fake_runtime runtime{io.get_executor()};
    fake_plugin resources{io.get_executor(), "node"};
    fake_plugin source{io.get_executor(), "files"};
    std::set<std::string> cgroups;
    node_options options;
    std::unique_ptr<core::node> node;
};

} // namespace gantry::core::testing
