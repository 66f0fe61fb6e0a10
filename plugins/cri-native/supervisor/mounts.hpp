// The plan's mounts (3.2 steps 5 to 8).
#pragma once

#include "plugins/cri-native/supervisor/child.hpp"
#include "plugins/cri-native/supervisor/filesystem.hpp"

namespace gantry::cri_native::supervisor {

/// What a child holds of each mount of the plan, in the plan's order.
class mount_set {
public:
    explicit mount_set(const child& c) noexcept;
    /// Takes the trees to bind as the host has them, before the child's namespace is cut off the host's propagation.
    void take_sources() noexcept;
    /// Attaches everything, writable: nested mount points are created in the parents first (k/k#60342).
    void attach(int root) noexcept;
    /// Then sets read-only, nosuid, nodev and noexec.
    void seal() noexcept;
    /// The devpts instance of the plan, for the terminal; -1 if it has none.
    int devpts() const noexcept { return devpts_; }

private:
    struct entry;
    void attach_one(int root, entry& e) noexcept;
    int cgroups(const spot& where, const entry& e) noexcept;

    const child& c_;
    entry* entries_ = nullptr;
    std::size_t count_ = 0;
    int devpts_ = -1;
};

} // namespace gantry::cri_native::supervisor
