// Security contexts to CRI.
#pragma once

#include <optional>
#include <string>

#include "core/pod/cri.hpp"

namespace runtime::v1 {
class LinuxContainerSecurityContext;
class LinuxSandboxSecurityContext;
} // namespace runtime::v1

namespace gantry::core {

/// Why runAsNonRoot forbids this container, or an empty string.
std::string check_non_root(const model::pod& pod, const model::container& c, const image_facts& image);

void fill_security(runtime::v1::LinuxContainerSecurityContext& out, const model::pod& pod, const model::container& c,
                   const image_facts& image, const machine_facts& machine);
void fill_security(runtime::v1::LinuxSandboxSecurityContext& out, const model::pod& pod);

} // namespace gantry::core
