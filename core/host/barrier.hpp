// Every function that plugin code calls is noexcept: what is thrown below it ends here, as a fault of the host.
#pragma once

#include <exception>
#include <utility>

#include "core/host/instance.hpp"
#include "core/log/log.hpp"

namespace gantry::core {

/// The instance that a service table's `host` stands for.
inline instance& owner_of(const void* host) noexcept { return *static_cast<instance*>(const_cast<void*>(host)); }

/// Runs a service function; `failed` is its result when memory or another resource of the host has run out.
template <class T, class F>
T guarded(const void* host, const char* service, T failed, const F& body) noexcept {
    try {
        return body(owner_of(host));
    } catch (const std::exception& e) {
        log::error("host service failed", {{"plugin", owner_of(host).name()}, {"service", service}, {"error", e.what()}});
        return failed;
    }
}

template <class F>
void guarded(const void* host, const char* service, const F& body) noexcept {
    guarded(host, service, 0, [&](instance& owner) {
        body(owner);
        return 0;
    });
}

} // namespace gantry::core
