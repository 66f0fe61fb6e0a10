// Errors about single fields, in the API server's words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gantry::model {

struct field_error {
    enum class kind { invalid, required, duplicate, unsupported, forbidden, too_long, not_found };

    kind type = kind::invalid;
    std::string field{};  ///< "spec.containers[0].resources.limits.memory"
    std::string value{};  ///< as it is shown: quoted when it is text; empty for required and forbidden
    std::string detail{}; ///< "quantities must match ..."

    /// `spec.containers[0].name: Required value`
    std::string to_string() const;
};

using field_errors = std::vector<field_error>;

/// `Pod "web" is invalid: E`, or `Pod "web" is invalid: [E1, E2]`.
std::string describe(std::string_view pod_name, const field_errors& errors);

} // namespace gantry::model
