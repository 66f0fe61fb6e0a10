// Reads one JSON object of a configuration key by key and reports what does not fit, unknown keys included.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "core/config/faults.hpp"

namespace gantry::core {

class object_reader {
public:
    /// The value at `path`; anything but an object is a fault, and all keys read as absent then. Null counts as empty.
    object_reader(fault_list& faults, const base::json::value& value, std::string path);

    /// Each returns nothing when the key is absent or its value is a fault.
    std::optional<std::string> text(std::string_view key, std::string_view form = {},
                                    const std::function<bool(std::string_view)>& fits = {});
    std::optional<std::string> choice(std::string_view key, const std::vector<std::string>& allowed);
    std::optional<std::string> absolute_path(std::string_view key);
    std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);
    std::optional<std::chrono::milliseconds> duration(std::string_view key, std::chrono::milliseconds low,
                                                      std::chrono::milliseconds high);
    const base::json::value* any(std::string_view key);
    const base::json::array* array(std::string_view key);
    const base::json::object* object(std::string_view key);

    void missing(std::string_view key, std::string_view what);
    /// Reports every key that was not asked for. Call it last.
    void finish();

    std::string path_of(std::string_view key) const;

private:
    void wrong(std::string_view key, const base::json::value& value, std::string_view allowed);

    fault_list& faults_;
    const base::json::object* object_;
    std::string path_;
    std::vector<std::string> known_;
};

/// "value X, allowed Y" with long values cut.
std::string wrong_value(const base::json::value& value, std::string_view allowed);

} // namespace gantry::core
