// Threads of the host: named, with every signal but the synchronous ones blocked, and with an alternate stack so that a
// stack overflow in a plugin can still be attributed.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace gantry::core {

/// The name is cut to 15 bytes (prctl(2), PR_SET_NAME).
std::thread start_thread(const std::string& name, std::function<void()> body);

} // namespace gantry::core
