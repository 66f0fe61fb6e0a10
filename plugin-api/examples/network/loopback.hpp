// The loopback link of a network namespace.
#pragma once

#include "gantry/sdk/result.hpp"

namespace loopback_only {

/// Brings lo up (127.0.0.1/8 and ::1/128 come with it). netns: a descriptor of the namespace. Blocks; needs CAP_SYS_ADMIN
/// and CAP_NET_ADMIN over the namespace.
gantry::result<void> bring_up(int netns);

/// True when lo is up.
gantry::result<bool> is_up(int netns);

} // namespace loopback_only
