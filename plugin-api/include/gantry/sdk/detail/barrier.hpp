// No exception crosses the ABI: what was thrown becomes an error that names the function it left.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "../result.hpp"

namespace gantry::sdk::detail {

/// For use inside a catch block only.
inline error thrown(std::string_view instance, std::string_view function) noexcept {
    const auto describe = [&](std::string_view what) {
        return error{.code = code::internal,
                     .message = "plugin instance \"" + std::string(instance) + "\": " + std::string(function) +
                                " threw " + std::string(what) +
                                "; this is a fault of the plugin, report it to its vendor"};
    };
    try {
        try {
            throw;
        } catch (const std::exception& e) {
            return describe(e.what());
        } catch (...) {
            return describe("something that is not a std::exception");
        }
    } catch (...) { // out of memory while describing; the short string needs no allocation
        error e;
        e.message = "out of memory";
        return e;
    }
}

/// "my_plugin::add" for &my_plugin::add.
template <auto Member>
constexpr std::string_view name_of() noexcept {
    std::string_view text = __PRETTY_FUNCTION__;
    constexpr std::string_view before = "Member = ";
    text.remove_prefix(text.find(before) + before.size());
    text = text.substr(0, text.find_first_of(";]"));
    if (text.starts_with('&')) text.remove_prefix(1);
    return text;
}

} // namespace gantry::sdk::detail
