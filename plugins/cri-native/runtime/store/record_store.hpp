// The files behind sandboxes and containers, one small protobuf each:
//
//   ROOT/SANDBOX/sandbox.pb          SandboxRecord; the last thing to go when a sandbox is removed
//   ROOT/SANDBOX/containers/ID.pb    ContainerRecord
//   ROOT/SANDBOX/etc/                resolv.conf, hosts, hostname of the pod
//   ROOT/SANDBOX/supervisor/         the supervisor's own directory
#pragma once

#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/runtime/store/record.pb.h"

namespace gantry::cri_native::store {

/// 32 hex digits from the kernel's random source.
std::string new_id();

class record_store {
public:
    explicit record_store(std::string root) : root_(std::move(root)) {}

    std::string sandbox_dir(const std::string& sandbox) const { return root_ + "/" + sandbox; }
    std::string supervisor_dir(const std::string& sandbox) const { return sandbox_dir(sandbox) + "/supervisor"; }
    std::string etc_dir(const std::string& sandbox) const { return sandbox_dir(sandbox) + "/etc"; }

    /// Makes the sandbox's directories. [worker]
    result<void> make_sandbox(const std::string& sandbox) const;
    /// Replaces a record; never synced to disk: it lies on tmpfs. [worker]
    result<void> put(const SandboxRecord& record) const;
    result<void> put(const ContainerRecord& record) const;
    /// Success when there is none. [worker]
    result<void> erase_container(const std::string& sandbox, const std::string& container) const;
    /// Removes the directory, sandbox.pb last. The supervisor's directory must be gone or free of mounts. [worker]
    result<void> erase_sandbox(const std::string& sandbox) const;

    struct entry {
        SandboxRecord sandbox;
        std::vector<ContainerRecord> containers;
    };
    struct contents {
        std::vector<entry> entries; ///< in order of their ids
        std::vector<std::string>
            leftover; ///< directories without a readable sandbox record: creation or removal was cut off
        std::vector<std::string> warnings; ///< container records that could not be read
    };
    /// Everything there is; what cannot be read does not hide the rest. [worker]
    result<contents> load() const;

private:
    std::string root_;
};

} // namespace gantry::cri_native::store
