// The network on a thread of its own: everything that touches the kernel or the leases happens there, one after
// another, so nothing needs a lock and no thread of the host waits for the kernel.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "plugins/cni-bridge/network.hpp"

namespace gantry::cni_bridge {

class service {
public:
    using clock = std::chrono::steady_clock;
    using job = std::function<void(network&)>;

    /// How long after a DEL a link that is still there is deleted: time for its namespace to take it along.
    static constexpr auto grace = std::chrono::seconds(2);
    static constexpr auto audit_period = std::chrono::seconds(60);
    /// A change of somebody else's seldom comes alone.
    static constexpr auto audit_delay = std::chrono::milliseconds(10);

    using log_fn = std::function<void(bool failed, std::string_view line)>;

    /// log: [any]. Starts the thread in the caller's network namespace.
    static result<std::unique_ptr<service>> start(settings config, network::environment env, log_fn log);
    /// Runs what is queued, then ends the thread.
    ~service();

    /// Runs f on the thread, after what is queued. [any]
    void post(job f);

private:
    service(settings config, network::environment env, log_fn log, base::unique_fd wake);
    void run();
    bool run_jobs();
    void tend(clock::time_point now);
    void audit(clock::time_point now);
    clock::time_point next_due() const;
    void wait(clock::time_point until);

    network network_;
    log_fn log_;
    base::unique_fd wake_;
    clock::time_point audit_at_ = clock::time_point::max();
    clock::time_point doom_at_ = clock::time_point::max();
    std::string last_failure_;

    std::mutex mutex_;
    std::vector<job> jobs_;
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace gantry::cni_bridge
