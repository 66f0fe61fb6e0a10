#include "core/pod/backoff.hpp"

#include <algorithm>

namespace gantry::core {

namespace {

bool starts_anew(const backoff& b, std::uint64_t key, base::wall_time event, const backoff_policy& policy) {
    return b.delay.count() == 0 || b.key != key || event - b.last_step > policy.reset;
}

} // namespace

base::wall_time backoff::next_try(std::uint64_t for_key, base::wall_time event, const backoff_policy& policy) const {
    return starts_anew(*this, for_key, event, policy) ? event : event + delay;
}

void backoff::step(std::uint64_t for_key, base::wall_time event, base::wall_time now, const backoff_policy& policy) {
    delay = starts_anew(*this, for_key, event, policy) ? policy.base : std::min(delay * 2, policy.limit);
    key = for_key;
    last_step = now;
}

} // namespace gantry::core
