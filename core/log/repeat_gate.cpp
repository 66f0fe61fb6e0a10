#include "core/log/repeat_gate.hpp"

#include <algorithm>
#include <utility>

namespace gantry::core::log {

std::optional<std::uint64_t> repeat_gate::pass(const std::string& key, const std::string& message, time_point now) {
    auto found = entries_.find(key);
    if (found == entries_.end()) {
        make_room();
        found = entries_.emplace(key, entry{}).first;
    }
    auto& entry = found->second;
    if (entry.message != message) {
        entry = {.message = message, .next = now + first_, .step = first_};
        return 0;
    }
    if (now < entry.next) {
        ++entry.kept_back;
        return std::nullopt;
    }
    entry.step = std::min(entry.step * 2, most_);
    entry.next = now + entry.step;
    return std::exchange(entry.kept_back, 0);
}

void repeat_gate::make_room() {
    if (entries_.size() < most_keys) return;
    const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                         [](const auto& a, const auto& b) { return a.second.next < b.second.next; });
    entries_.erase(oldest);
}

} // namespace gantry::core::log
