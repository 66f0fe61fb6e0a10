// Two plugins in one library; compiled with GANTRY_STATIC=pair.
#include "gantry/sdk/plugin.hpp"

namespace {

struct first {
    gantry::result<void> init(gantry::sdk::host& host) {
        host.info("first");
        return {};
    }
};
struct second {
    gantry::result<void> init(gantry::sdk::host& host) {
        host.info("second");
        return {};
    }
};

} // namespace

GANTRY_PLUGIN_DEFINE(first_plugin, first,
                     {"id" : "dev.gantry.first", "name" : "first", "version" : "1.0.0", "capabilities" : []})
GANTRY_PLUGIN_DEFINE(second_plugin, second,
                     {"id" : "dev.gantry.second", "name" : "second", "version" : "1.0.0", "capabilities" : []})
GANTRY_PLUGIN_LIBRARY(first_plugin, second_plugin)
