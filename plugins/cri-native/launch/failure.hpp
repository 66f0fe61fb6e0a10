// Sentences for what a supervisor reports: step, errno, object.
#pragma once

#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/launch/plan.hpp"
#include "plugins/cri-native/launch/wire.hpp"

namespace gantry::cri_native::launch {

struct failure {
    wire::step step = wire::step::none;
    int err = 0;
    std::string object;
    std::string detail;
};

error to_error(const failure& f);

/// The sizes that E2BIG is about, as " (environment and arguments: N bytes, limit M; ...)".
std::string argument_sizes(const process_plan& process);

} // namespace gantry::cri_native::launch
