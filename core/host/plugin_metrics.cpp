#include "core/host/plugin_metrics.hpp"

#include <algorithm>
#include <cmath>

#include "gantry/abi/host.h"

namespace gantry::core {

namespace {

constexpr std::size_t most_families = 200;
constexpr std::size_t most_labels = 1000;

bool is_metric_name(std::string_view name) {
    if (name.empty() || name.size() > 100 || !((name[0] >= 'a' && name[0] <= 'z') || name[0] == '_')) return false;
    return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

/// The value of a label, null when there are too many.
template <class Map>
typename Map::mapped_type* at(Map& map, std::string_view label) {
    if (const auto found = map.find(label); found != map.end()) return &found->second;
    if (map.size() >= most_labels) return nullptr;
    return &map.emplace(std::string(label), typename Map::mapped_type{}).first->second;
}

} // namespace

std::uint32_t plugin_metrics::define(int kind, std::string_view name, std::string_view help) {
    const std::lock_guard lock(mutex_);
    const auto taken = [&](const family& f) { return f.name == name; };
    if (frozen_ || kind < GANTRY_METRIC_COUNTER || kind > GANTRY_METRIC_HISTOGRAM || !is_metric_name(name) ||
        families_.size() >= most_families || std::any_of(families_.begin(), families_.end(), taken))
        return 0;
    families_.push_back({.kind = kind, .name = std::string(name), .help = std::string(help)});
    return static_cast<std::uint32_t>(families_.size());
}

void plugin_metrics::freeze() {
    const std::lock_guard lock(mutex_);
    frozen_ = true;
}

void plugin_metrics::record(std::uint32_t metric, std::string_view label, double value) {
    const std::lock_guard lock(mutex_);
    if (metric == 0 || metric > families_.size()) return;
    auto& family = families_[metric - 1];
    if (family.kind == GANTRY_METRIC_HISTOGRAM) {
        if (auto* histogram = at(family.histograms, label)) histogram->observe(value);
    } else if (auto* current = at(family.values, label)) {
        if (family.kind == GANTRY_METRIC_GAUGE) *current = value;
        else if (value >= 0) *current += value; // a counter never falls
    }
}

void plugin_metrics::reset() {
    const std::lock_guard lock(mutex_);
    families_.clear();
    frozen_ = false;
}

std::vector<plugin_metrics::family> plugin_metrics::snapshot() const {
    const std::lock_guard lock(mutex_);
    return families_;
}

} // namespace gantry::core
