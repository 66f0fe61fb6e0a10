// The one header a plugin includes, and the macros that make its library.
//
//   GANTRY_PLUGIN(my_plugin, {"id": "com.acme.net", "name": "acme-net", "version": "1.0.0", ...})
//
// makes a library of one plugin. Several in one library:
//
//   GANTRY_PLUGIN_DEFINE(net, acme::net_plugin, {"id": "com.acme.net", ...})
//   GANTRY_PLUGIN_DEFINE(gc, acme::gc_plugin, {"id": "com.acme.gc", ...})
//   GANTRY_PLUGIN_LIBRARY(net, gc)
//
// Compiled with -DGANTRY_STATIC=name the same source gives gantry_plugin_main_name instead of the exported symbol; the
// program that links it says GANTRY_PLUGIN_STATIC(name) and finds it in sdk::static_plugins().
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "../abi/plugin.h"
#include "capability.hpp"
#include "host.hpp"
#include "instance.hpp"
#include "task.hpp"

namespace gantry::sdk {

namespace detail {

struct definition {
    const gantry_note_header* (*descriptor)();
    const gantry_plugin* (*create)(const gantry_host*, gantry_error_sink*) noexcept;
};

template <const definition&... Plugins>
struct library {
    static const gantry_note_header* descriptor(std::uint32_t index) noexcept {
        return index < list.size() ? list[index]->descriptor() : nullptr;
    }
    static const gantry_plugin* create(std::uint32_t index, const gantry_host* host, gantry_error_sink* sink) noexcept {
        if (index < list.size()) return list[index]->create(host, sink);
        report(sink, {.code = code::not_found, .message = "this library has fewer plugins"});
        return nullptr;
    }
    static constexpr std::array<const definition*, sizeof...(Plugins)> list{&Plugins...};
    static constexpr gantry_plugin_entry entry{
        sizeof(gantry_plugin_entry), GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, sizeof...(Plugins), 0, &descriptor, &create};
};

} // namespace detail

/// A plugin library that is part of this program.
struct static_plugin {
    std::string_view name;
    gantry_plugin_main_fn main;
};
inline std::vector<static_plugin>& static_plugins() {
    static std::vector<static_plugin> list;
    return list;
}

} // namespace gantry::sdk

#define GANTRY_PLUGIN(Class, ...)                                                                                      \
    GANTRY_DESCRIPTOR_TEXT(gantry_plugin_note, #__VA_ARGS__)                                                           \
    static constexpr ::gantry::sdk::detail::definition gantry_plugin_definition{                                       \
        &gantry_plugin_note_descriptor, &::gantry::sdk::detail::instance<Class>::create};                              \
    GANTRY_PLUGIN_MAIN_(gantry_plugin_definition)

#define GANTRY_PLUGIN_DEFINE(symbol, Class, ...)                                                                       \
    GANTRY_DESCRIPTOR_TEXT(symbol##_note, #__VA_ARGS__)                                                                \
    static constexpr ::gantry::sdk::detail::definition symbol{&symbol##_note_descriptor,                               \
                                                              &::gantry::sdk::detail::instance<Class>::create};
#define GANTRY_PLUGIN_LIBRARY(...) GANTRY_PLUGIN_MAIN_(__VA_ARGS__)

#define GANTRY_PLUGIN_MAIN_NAMED__(name) gantry_plugin_main_##name
#define GANTRY_PLUGIN_MAIN_NAMED_(name) GANTRY_PLUGIN_MAIN_NAMED__(name)
#ifdef GANTRY_STATIC
#define GANTRY_PLUGIN_MAIN_(...)                                                                                       \
    extern "C" const gantry_plugin_entry* GANTRY_PLUGIN_MAIN_NAMED_(GANTRY_STATIC)(void) {                             \
        return &::gantry::sdk::detail::library<__VA_ARGS__>::entry;                                                    \
    }
#else
#define GANTRY_PLUGIN_MAIN_(...)                                                                                       \
    extern "C" GANTRY_EXPORT const gantry_plugin_entry* GANTRY_PLUGIN_MAIN(void) {                                     \
        return &::gantry::sdk::detail::library<__VA_ARGS__>::entry;                                                    \
    }
#endif

/// In the program that links a plugin compiled with -DGANTRY_STATIC=name.
#define GANTRY_PLUGIN_STATIC(name)                                                                                     \
    extern "C" const gantry_plugin_entry* gantry_plugin_main_##name(void);                                             \
    [[maybe_unused]] static const bool gantry_plugin_static_##name = [] {                                              \
        ::gantry::sdk::static_plugins().push_back({#name, &gantry_plugin_main_##name});                                \
        return true;                                                                                                   \
    }();
