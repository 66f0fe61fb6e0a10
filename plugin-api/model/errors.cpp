#include "gantry/model/errors.hpp"

namespace gantry::model {

std::string field_error::to_string() const {
    std::string out = field + ": ";
    switch (type) {
    case kind::invalid: out += "Invalid value"; break;
    case kind::required: out += "Required value"; break;
    case kind::duplicate: out += "Duplicate value"; break;
    case kind::unsupported: out += "Unsupported value"; break;
    case kind::forbidden: out += "Forbidden"; break;
    case kind::too_long: out += "Too long"; break;
    case kind::not_found: out += "Not found"; break;
    }
    if (!value.empty()) out += ": " + value;
    if (!detail.empty()) out += ": " + detail;
    return out;
}

std::string describe(std::string_view pod_name, const field_errors& errors) {
    std::string out = "Pod \"" + std::string(pod_name) + "\" is invalid: ";
    if (errors.size() > 1) out += '[';
    for (std::size_t i = 0; i < errors.size(); ++i) out += (i == 0 ? "" : ", ") + errors[i].to_string();
    if (errors.size() > 1) out += ']';
    return out;
}

} // namespace gantry::model
