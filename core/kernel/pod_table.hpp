// The pods that the node's sources want, by UID; who wins when two want the same name.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gantry/model/pod.hpp"

namespace gantry::core {

/// Pure bookkeeping, used from the core loop only.
class pod_table {
public:
    struct entry {
        std::shared_ptr<const model::pod> pod;
        std::size_t source = 0; ///< its place in the order of sources
    };

    explicit pod_table(std::size_t sources) : sources_(sources) {}

    void set(std::size_t source, std::shared_ptr<const model::pod> pod);
    /// True if the source had it.
    bool erase(std::size_t source, const std::string& uid);

    /// A source starts to list its state anew.
    void begin_listing(std::size_t source);
    /// It has told everything: forgets what it did not mention since begin_listing and returns those UIDs.
    std::vector<std::string> end_listing(std::size_t source);

    /// Of the first source that has it; null when none does.
    std::shared_ptr<const entry> find(const std::string& uid) const;
    /// Everybody who wants this "namespace/name": earlier sources first, then by the file it came from, then by UID.
    std::vector<entry> candidates(const std::string& key) const;
    std::vector<entry> all() const;

private:
    struct source_state {
        std::map<std::string, std::shared_ptr<const model::pod>> pods;
        std::set<std::string> unmentioned;
    };
    std::vector<source_state> sources_;
};

} // namespace gantry::core
