// The metrics that one instance defined for itself through gantry.metrics/1.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/host/metrics.hpp"

namespace gantry::core {

class plugin_metrics {
public:
    /// A handle > 0; 0 when the name is taken or malformed, the kind unknown, or definitions are closed. [any]
    std::uint32_t define(int kind, std::string_view name, std::string_view help);
    /// No definition after init. [any]
    void freeze();
    /// Unknown handles, and labels past the 1000th of a family, are dropped: a plugin must not fill the memory. [any]
    void record(std::uint32_t metric, std::string_view label, double value);
    /// Starts anew, for another life of the instance.
    void reset();

    struct family {
        int kind = 0;
        std::string name{}, help{};
        std::map<std::string, double, std::less<>> values{};                ///< counters and gauges, by label
        std::map<std::string, latency_histogram, std::less<>> histograms{};
    };
    std::vector<family> snapshot() const;

private:
    mutable std::mutex mutex_;
    bool frozen_ = false;
    std::vector<family> families_; ///< handle - 1 is the index
};

} // namespace gantry::core
