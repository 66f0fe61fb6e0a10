// The library entry of a plugin class that is part of the test program.
#pragma once

#include "gantry/abi/draft/network.h"
#include "gantry/sdk/fake_host.h"
#include "gantry/sdk/plugin.hpp"

namespace gantry::sdk_test {

GANTRY_DESCRIPTOR(test_note, {"id" : "dev.gantry.test", "name" : "test", "version" : "1.0.0", "capabilities" : []})

template <class P>
inline constexpr sdk::detail::definition definition_of{&test_note_descriptor, &sdk::detail::instance<P>::create};

template <class P>
const gantry_plugin_entry* entry_of() {
    return &sdk::detail::library<definition_of<P>>::entry;
}

/// A fake host with a plugin of class P that was started, and its gantry.network table.
template <class P>
struct started {
    explicit started(fake::settings with = {})
        : host(std::move(with)), plugin(host, entry_of<P>()), begun(plugin.start()) {
        if (begun.ok()) network = plugin.template capability<gantry_network>(GANTRY_NETWORK);
    }
    fake::host host;
    fake::plugin plugin;
    fake::outcome begun;
    const gantry_network* network = nullptr;
};

} // namespace gantry::sdk_test
