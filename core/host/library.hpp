// A plugin library in memory. Never unloaded: destructors of thread-locals, atexit handlers and detached threads make that
// unsafe for code that is not ours.
#pragma once

#include <string>
#include <vector>

#include "core/host/descriptor.hpp"
#include "gantry/abi/plugin.h"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// Maps the library (every symbol resolved, none shared) and runs its constructors. `path` is a file that only holds the
/// bytes that were verified. Errors name `origin`, the file that the user knows, and what the loader says. [lane]
result<gantry_plugin_main_fn> load_library(const std::string& path, const std::string& origin);

/// Calls the entry function and checks what it returns against the notes that were read before. [lane]
result<const gantry_plugin_entry*> check_entry(gantry_plugin_main_fn main, const std::string& origin, const descriptor& expected,
                                               std::uint32_t index);

/// Executable segments of the library that `address` lies in, as begin and end.
std::vector<std::pair<const void*, const void*>> code_around(const void* address);

} // namespace gantry::core
