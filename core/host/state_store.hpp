// Small durable values of one instance: one file a key.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// Keys are [A-Za-z0-9._-]{1,128}, values at most 64 KiB. Replaced by tmp + rename: kill -9 leaves the old or the new value.
/// [any, blocks]
class state_store {
public:
    explicit state_store(std::string dir) : dir_(std::move(dir)) {}

    /// An empty value deletes.
    result<void> put(std::string_view key, std::string_view value);
    result<std::string> get(std::string_view key) const;
    std::vector<std::string> keys() const;

private:
    const std::string dir_; ///< made by the first put
    mutable std::mutex mutex_;
};

} // namespace gantry::core
