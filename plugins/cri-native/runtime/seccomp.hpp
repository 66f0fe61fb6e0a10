// Compiled seccomp filters. libseccomp needs milliseconds and memory for what never changes, so a helper process
// compiles each filter once and the result stays on disk; a later container start reads a few kilobytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gantry/sdk/host.hpp"
#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/runtime/spec/container.hpp"

namespace gantry::cri_native {

/// The capabilities that the default profile has extra rules for; others make no other filter.
std::uint64_t seccomp_relevant(std::uint64_t capabilities);

class seccomp_cache {
public:
    /// dir: exists, private to this instance. compiler: path of gantry-seccomp. [any]
    seccomp_cache(sdk::host host, std::string dir, std::string compiler);

    /// Removes filters that another build of the compiler made. [worker]
    result<void> sweep();

    /// struct sock_filter[] for the choice, empty for unconfined. Filters depend on the capabilities a container keeps.
    /// A localhost profile is compiled anew when its file changes. [worker]
    result<std::vector<std::uint8_t>> load(const seccomp_choice& choice, std::uint64_t capabilities);

private:
    result<std::string> compiler_tag() const;

    sdk::host host_;
    std::string dir_;
    std::string compiler_;
};

} // namespace gantry::cri_native
