#include "core/host/metrics.hpp"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace gantry::core {

namespace {

void append_label_value(std::string& out, std::string_view value) {
    for (const char c : value) {
        if (c == '\\' || c == '"') (out += '\\') += c;
        else if (c == '\n') out += "\\n";
        else out += c;
    }
}

void append_labels(std::string& out, const metrics_writer::labels& labels, std::string_view bound = {}) {
    if (labels.empty() && bound.empty()) return;
    out += '{';
    bool first = true;
    for (const auto& [key, value] : labels) {
        if (!std::exchange(first, false)) out += ',';
        out.append(key).append("=\"");
        append_label_value(out, value);
        out += '"';
    }
    if (!bound.empty()) out.append(first ? "" : ",").append("le=\"").append(bound).append("\"");
    out += '}';
}

std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return fmt::format("{}", value);
}

} // namespace

void latency_histogram::observe(double seconds) noexcept {
    std::size_t i = 0;
    while (i < bounds.size() && seconds > bounds[i]) ++i;
    ++buckets_[i];
    ++count_;
    sum_ += seconds;
}

std::uint64_t latency_histogram::cumulative(std::size_t i) const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t j = 0; j <= i && j < buckets_.size(); ++j) sum += buckets_[j];
    return sum;
}

void metrics_writer::family(std::string_view name, std::string_view type, std::string_view help) {
    text_.append("# HELP ").append(name).append(" ");
    for (const char c : help) {
        if (c == '\n') text_ += "\\n";
        else if (c == '\\') text_ += "\\\\";
        else text_ += c;
    }
    text_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void metrics_writer::sample(std::string_view name, const labels& labels, double value) {
    text_.append(name);
    append_labels(text_, labels);
    text_.append(" ").append(number(value)).append("\n");
}

void metrics_writer::histogram(std::string_view name, const labels& labels, const latency_histogram& histogram) {
    const auto bucket = [&](std::string_view bound, std::uint64_t count) {
        text_.append(name).append("_bucket");
        append_labels(text_, labels, bound);
        text_.append(" ").append(std::to_string(count)).append("\n");
    };
    for (std::size_t i = 0; i < latency_histogram::bounds.size(); ++i)
        bucket(number(latency_histogram::bounds[i]), histogram.cumulative(i));
    bucket("+Inf", histogram.count());
    sample(std::string(name) + "_sum", labels, histogram.sum());
    sample(std::string(name) + "_count", labels, static_cast<double>(histogram.count()));
}

} // namespace gantry::core
