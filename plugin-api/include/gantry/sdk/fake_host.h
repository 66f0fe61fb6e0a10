// fake_host: gantry's host services in the process of a unit test (C++17), for plugins written in C, C++ or anything
// else.
//
//   gantry::fake::host host({.config = R"({"subnet": "10.0.0.0/24"})"});
//   gantry::fake::plugin plugin(host, gantry_plugin_main());
//   ASSERT_TRUE(plugin.start().ok());
//   const auto* network = plugin.capability<gantry_network>(GANTRY_NETWORK);
//   const auto added = plugin.call(network->add, {R"({"containerID": "c1"})", {netns_fd}});
//
// Everything is real: a lane thread, workers, timers, epoll, helper processes, files; peers are what the test
// registers. Like gantry, it never lets a plugin's mistake pass: see misbehaviour(). One host, one instance.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../abi/plugin.h"
#include "fake/folder.h"
#include "fake/helpers.h"
#include "fake/loop.h"
#include "fake/message.h"
#include "fake/ops.h"
#include "fake/recorder.h"
#include "fake/workers.h"

namespace gantry::fake {

struct settings {
    std::string config = "{}"; ///< the instance's config, JSON
    std::string instance = "test";
    std::string node_name = "node-1";
    std::string node_instance = "t1";
    std::vector<std::string> missing = {}; ///< service ids that this host shall not have
    std::size_t workers = 4;
    std::string folder = {}; ///< of its state and run directories; empty: a temporary one. Two hosts in turn: a restart
};

/// Answers a peer call, on a thread of its own; the reply reaches the plugin on the lane. An error needs a code and a
/// message.
using peer =
    std::function<outcome(const std::string& bytes, const std::vector<shared_fd>& fds, const std::string& key)>;

class host {
public:
    explicit host(settings with = {});
    ~host() {
        helpers_.kill_all();
        for (auto& one : peer_threads_) one.join();
    }
    host(const host&) = delete;
    host& operator=(const host&) = delete;

    const gantry_host* abi() const { return &abi_.base; }
    const settings& with() const { return with_; }

    // ---- what the plugin did ---------------------------------------------------------------------------------------
    std::vector<log_line> logs() const { return recorder_.logs(); }
    bool logged(const std::string& part) const { return recorder_.logged(part); }
    double metric(const std::string& name, const std::string& label = {}) const {
        return recorder_.metric(name, label);
    }
    std::vector<event> published() const { return recorder_.published(); }
    std::vector<std::string> emitted() const { return recorder_.emitted(); }
    /// Breaches of the ABI: second completions, errors without a message, services used when they may not be.
    std::vector<std::string> misbehaviour() { return ops_.misbehaviour(); }

    // ---- what the test does ----------------------------------------------------------------------------------------
    /// The peer's operation; without it the plugin's call fails as `unavailable`.
    void add_peer(const std::string& capability, const std::string& op, peer answer) {
        const std::lock_guard<std::mutex> lock(mutex_);
        peers_[{capability, op}] = std::move(answer);
    }
    /// Sends an event to the plugin's subscriptions.
    void send_event(const std::string& topic, const std::string& key, const std::string& bytes);
    /// Makes the executor refuse work, as when its queue is full.
    void refuse_work(bool on) { workers_.refuse(on); }
    void set_log_level(std::int32_t lowest) { log_level_ = lowest; }

    ops& operations() { return ops_; }
    loop& lane() { return loop_; }
    folder& files() { return folder_; }
    /// Services may be called while this is set: from init() on until stop() returns.
    void set_open(bool open);
    void set_initialising(bool on) { recorder_.allow_define(on); }

private:
    struct owned_host {
        gantry_host base; // first: get() gets a pointer to it
        host* self;
    };
    struct subscriber {
        std::string topic;
        gantry_event_fn fn;
        void* context;
    };
    static host& of(const void* self) { return *const_cast<host*>(static_cast<const host*>(self)); }
    /// The host, after noting a call that came too early or too late.
    static host& use(const void* self, const char* service) {
        auto& h = of(self);
        if (!h.open_) h.ops_.fault(std::string(service) + " used before init() or after stop()");
        return h;
    }
    static const void* get(const gantry_host* self, gantry_str id);
    gantry_status call_peer(gantry_str capability, gantry_str op, const gantry_request& request, gantry_reply_fn fn,
                            void* context, gantry_error_sink* error);
    static void deliver(const outcome& end, gantry_reply_fn fn, void* context);
    void fill_tables();

    settings with_;
    folder folder_{with_.folder};
    const std::string state_dir_ = folder_.state();
    const std::string run_dir_ = folder_.run();
    std::atomic<bool> open_{false};
    std::atomic<std::int32_t> log_level_{GANTRY_LOG_DEBUG};
    std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, peer> peers_;
    std::map<std::uint64_t, subscriber> subscribers_;
    std::uint64_t last_subscription_ = 0;
    std::vector<std::thread> peer_threads_;
    recorder recorder_;
    loop loop_;
    ops ops_{loop_};
    workers workers_;
    helpers helpers_;

    owned_host abi_{};
    gantry_op_service op_{};
    gantry_log_service log_{};
    gantry_metrics_service metrics_{};
    gantry_events_service events_{};
    gantry_timer_service timer_{};
    gantry_fd_service fd_{};
    gantry_executor_service executor_{};
    gantry_config_service config_{};
    gantry_state_service state_{};
    gantry_exec_service exec_{};
    gantry_peer_service peer_{};
    gantry_trace_service trace_{};
    std::map<std::string, const void*> tables_;
};

} // namespace gantry::fake

#include "fake/host_services.h"
#include "fake/plugin.h"
