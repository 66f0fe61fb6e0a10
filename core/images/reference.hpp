// Image names as the distribution reference grammar has them.
#pragma once

#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// The name with ":latest" when it has neither tag nor digest. Fails with the kubelet's words for a name that is none.
result<std::string> with_default_tag(std::string_view image);

} // namespace gantry::core
