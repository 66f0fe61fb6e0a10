// The present status of every pod, numbered, and published when it changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/kernel/topic.hpp"
#include "core/kernel/views.hpp"

namespace gantry::core {

/// Used from the core loop only.
class status_manager {
public:
    explicit status_manager(boost::asio::any_io_executor executor) : changes_(std::move(executor)) {}

    /// True when it differs from the status published last.
    bool publish(std::shared_ptr<const model::pod> pod, model::pod_status status);
    void erase(const std::string& uid) { changes_.erase(uid); }
    /// Null when nothing was published.
    std::shared_ptr<const pod_change> find(const std::string& uid) const;

    topic<std::shared_ptr<const pod_change>>& changes() { return changes_; }
    const topic<std::shared_ptr<const pod_change>>& changes() const { return changes_; }

private:
    std::uint64_t version_ = 0;
    topic<std::shared_ptr<const pod_change>> changes_;
};

/// What `kubectl get pods` shows as STATUS.
std::string status_word(const model::pod& pod, const model::pod_status& status, bool ending);
pod_summary summarize(const model::pod& pod, const model::pod_status& status, bool ending);

} // namespace gantry::core
