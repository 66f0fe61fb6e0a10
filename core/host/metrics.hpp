// Counters in Prometheus text format 0.0.4.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::core {

/// Durations in seconds, in fixed buckets from 10 µs to 100 s.
class latency_histogram {
public:
    static constexpr std::array<double, 15> bounds{1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 100};

    void observe(double seconds) noexcept;
    std::uint64_t count() const noexcept { return count_; }
    double sum() const noexcept { return sum_; }
    /// Observations at or below bounds[i].
    std::uint64_t cumulative(std::size_t i) const noexcept;

private:
    std::array<std::uint64_t, bounds.size() + 1> buckets_{};
    std::uint64_t count_ = 0;
    double sum_ = 0;
};

/// Writes families; samples of one family must follow each other.
class metrics_writer {
public:
    using labels = std::vector<std::pair<std::string_view, std::string_view>>;

    void family(std::string_view name, std::string_view type, std::string_view help);
    void sample(std::string_view name, const labels& labels, double value);
    void histogram(std::string_view name, const labels& labels, const latency_histogram& histogram);
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

} // namespace gantry::core
