// Collects what is wrong with a pod, with the path of each field.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include "gantry/model/errors.hpp"

namespace gantry::model {

/// The largest user or group id that Kubernetes lets a pod ask for, and the most seconds.
inline constexpr std::int64_t max_id = std::numeric_limits<std::int32_t>::max();

class checker {
public:
    explicit checker(field_errors& errors) : errors_(errors) {}

    void invalid(std::string field, std::string_view value, std::string detail) {
        add(field_error::kind::invalid, std::move(field), quoted(value), std::move(detail));
    }
    void invalid(std::string field, std::int64_t value, std::string detail) {
        add(field_error::kind::invalid, std::move(field), std::to_string(value), std::move(detail));
    }
    void required(std::string field, std::string detail = {}) {
        add(field_error::kind::required, std::move(field), {}, std::move(detail));
    }
    void forbidden(std::string field, std::string detail) {
        add(field_error::kind::forbidden, std::move(field), {}, std::move(detail));
    }
    void duplicate(std::string field, std::string_view value) {
        add(field_error::kind::duplicate, std::move(field), quoted(value), {});
    }
    void not_found(std::string field, std::string_view value) {
        add(field_error::kind::not_found, std::move(field), quoted(value), {});
    }
    /// Says so unless value is one of allowed.
    void one_of(std::string field, std::string_view value, std::initializer_list<std::string_view> allowed) {
        std::string list;
        for (const auto a : allowed) {
            if (a == value) return;
            list += (list.empty() ? "\"" : ", \"") + std::string(a) + "\"";
        }
        add(field_error::kind::unsupported, std::move(field), quoted(value), "supported values: " + list);
    }
    void in_range(std::string field, std::int64_t value, std::int64_t low, std::int64_t high) {
        if (value < low || value > high)
            invalid(std::move(field), value,
                    "must be between " + std::to_string(low) + " and " + std::to_string(high) + ", inclusive");
    }
    /// `why` as names.hpp gives it.
    void rule(std::string field, std::string_view value, std::string why) {
        if (!why.empty()) invalid(std::move(field), value, std::move(why));
    }

private:
    static std::string quoted(std::string_view value) { return "\"" + std::string(value) + "\""; }
    void add(field_error::kind type, std::string field, std::string value, std::string detail) {
        errors_.push_back(
            {.type = type, .field = std::move(field), .value = std::move(value), .detail = std::move(detail)});
    }

    field_errors& errors_;
};

inline std::string at(std::string_view list, std::size_t index) {
    return std::string(list) + "[" + std::to_string(index) + "]";
}

} // namespace gantry::model
