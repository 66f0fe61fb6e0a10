// The pieces that every Kubernetes object is made of.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/describe/class.hpp>

#include "box.hpp"
#include "quantity.hpp"

namespace gantry::model {

/// Members of a JSON object that this version does not know: the text of an object, written back as it was read.
using unknown_fields = box<std::string>;

/// A member that is kept as JSON text: what matters here is whether it is there.
struct raw_json {
    box<std::string> text{};

    explicit operator bool() const { return static_cast<bool>(text); }
    friend bool operator==(const raw_json&, const raw_json&) = default;
};

using string_map = std::map<std::string, std::string>;
/// Resource name ("cpu", "memory", "example.com/gadget") to amount.
using resource_list = std::map<std::string, quantity>;

/// ObjectMeta. Times are RFC 3339 text.
struct object_meta {
    std::string name{};
    std::string namespace_{};
    std::string uid{};
    std::string resource_version{};
    std::int64_t generation = 0;
    std::string creation_timestamp{};
    std::string deletion_timestamp{};
    std::optional<std::int64_t> deletion_grace_period_seconds{};
    string_map labels{};
    string_map annotations{};
    unknown_fields unknown{};

    friend bool operator==(const object_meta&, const object_meta&) = default;
};
BOOST_DESCRIBE_STRUCT(object_meta, (),
                      (name, namespace_, uid, resource_version, generation, creation_timestamp, deletion_timestamp,
                       deletion_grace_period_seconds, labels, annotations, unknown))

} // namespace gantry::model
