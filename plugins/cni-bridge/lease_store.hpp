// Leases on disk: one small JSON file each, so that an ADD writes one file and a DEL removes one.
//
// They must survive the death of this process, not a power cut: after a reboot no attachment exists any more, and GC
// frees what is left. So nothing is synced, and a file that a power cut left empty is dropped.
#pragma once

#include <string>
#include <vector>

#include "plugins/cni-bridge/lease.hpp"

namespace gantry::cni_bridge {

class lease_store {
public:
    explicit lease_store(std::string directory) : directory_(std::move(directory)) {}

    struct contents {
        std::vector<lease> leases{};
        std::vector<std::string> dropped{}; ///< why each unreadable file was removed, for the log
    };
    /// Makes the directory if need be. [blocks]
    result<contents> load() const;
    result<void> save(const lease& l) const;
    /// Success when there is none.
    result<void> remove(const lease& l) const;

private:
    std::string path_of(const lease& l) const;
    std::string directory_;
};

} // namespace gantry::cni_bridge
