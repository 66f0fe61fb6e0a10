// The environment of a container, and $(NAME) in its command and arguments.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gantry/model/pod.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// Replaces $(NAME) by what lookup gives; $$ stands for $; an unknown or unfinished reference stays as it is.
std::string expand(std::string_view text, const std::function<const std::string*(std::string_view name)>& lookup);

/// What downward references can ask for beside the spec.
struct env_facts {
    std::vector<std::string> pod_ips{};
    std::vector<std::string> host_ips{};
    std::string node_name{};
    model::resource_list allocatable{}; ///< of the node, in place of limits that are not set
};

using env_list = std::vector<std::pair<std::string, std::string>>;

/// Variables in order of their first mention, each with its last value. Fails with code::invalid when a reference cannot
/// be resolved.
result<env_list> make_env(const model::pod& pod, const model::container& c, const env_facts& facts);

/// Each item with $(NAME) replaced from env.
std::vector<std::string> expand_all(const std::vector<std::string>& items, const env_list& env);

} // namespace gantry::core
