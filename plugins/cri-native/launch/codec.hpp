// Plans as bytes (launch/wire.hpp). Everything that can be checked without the kernel is checked here, so that a plan
// that does not make sense fails with a sentence instead of an errno.
#pragma once

#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/launch/plan.hpp"

namespace gantry::cri_native::launch {

/// [A-Za-z0-9_+-][A-Za-z0-9_+.-]*, at most 128 bytes.
bool valid_id(std::string_view id) noexcept;

result<std::string> encode(const sandbox_plan& plan);
result<std::string> encode(const container_plan& plan);
result<std::string> encode(const exec_plan& plan);

/// What PATH a process gets when its environment has none.
inline constexpr std::string_view default_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

} // namespace gantry::cri_native::launch
