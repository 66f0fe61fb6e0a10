// The part of pod validation that looks at one container.
#pragma once

#include <set>
#include <string>

#include "checker.hpp"
#include "gantry/model/pod.hpp"

namespace gantry::model {

struct container_scope {
    const pod_spec& spec;
    bool init = false;
    std::set<std::string>& names;      ///< of all containers so far
    std::set<std::string>& host_ports; ///< "TCP/10.0.0.1/80", of the regular containers so far
};

void check_container(checker& check, const std::string& path, const container& c, const container_scope& scope);

/// limits and requests of a container or of a pod.
void check_resources(checker& check, const std::string& path, const resource_requirements& resources);

} // namespace gantry::model
