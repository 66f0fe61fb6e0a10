// Error codes of CNI 1.1 (section 5, "Error"), carried in error.detail as {"cniCode": "N"}.
#pragma once

#include <string>
#include <utility>

#include "gantry/sdk/result.hpp"

namespace gantry::cni_bridge {

enum class cni_code : int {
    unsupported_field = 2,
    unknown_container = 3,
    invalid_parameters = 4, ///< containerID, ifname and the like
    io_failure = 5,
    decode_failure = 6,
    invalid_config = 7,
    try_again = 11,
    unavailable = 50,         ///< ADD cannot be served
    unavailable_limited = 51, ///< and pods that exist may have lost connectivity
    // Codes from 100 on are this plugin's own.
    no_address = 100,
    port_taken = 101,
    interface_taken = 102,
    check_failed = 103,
};

/// The error with its CNI code. A code it carries already stays.
inline error with_cni(error e, cni_code number) {
    if (e.detail.empty()) e.detail = "{\"cniCode\":\"" + std::to_string(static_cast<int>(number)) + "\"}";
    return e;
}

inline error cni_error(code c, cni_code number, std::string message) {
    return with_cni({.code = c, .message = std::move(message)}, number);
}

} // namespace gantry::cni_bridge
