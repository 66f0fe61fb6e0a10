// Which unused images go first: the largest. A pure function; the core removes.
#pragma once

#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace largest_first {

struct limits {
    int high_percent = 85; ///< of the filesystem in use: below it nothing is removed
    int low_percent = 80;  ///< what removing aims at
};

/// From the plugin's config.
gantry::result<limits> read_limits(std::string_view json);

/// The reply of gantry.image-gc rank for its request; both JSON.
gantry::result<std::string> plan(std::string_view request, const limits& with);

} // namespace largest_first
