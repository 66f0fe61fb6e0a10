// Plugin code must not throw across the ABI. If it does, the exception ends here and the plugin is blamed.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include <cxxabi.h>

namespace gantry::core {

/// What `code` threw, or nothing. The unwinding of a thread that is being cancelled goes on.
template <class F>
std::optional<std::string> catching(const F& code) {
    try {
        code();
        return std::nullopt;
    } catch (const std::exception& e) {
        return e.what();
    } catch (const abi::__forced_unwind&) {
        throw;
    } catch (...) {
        return "an exception that is no std::exception";
    }
}

} // namespace gantry::core
