// Kubernetes quantities ("250m", "64Mi", "1e3"): exact values, printed in the API server's canonical form.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "../sdk/result.hpp"

namespace gantry::model {

/// A whole number of billionths. Magnitudes up to 2^63-1 units fit; larger ones and finer digits than
/// nano are errors instead of being capped, since a limit that is silently another one hurts.
class quantity {
public:
    enum class format : std::uint8_t { decimal_si, binary_si, decimal_exponent };

    quantity() = default;
    static quantity of_units(std::int64_t units, format f = format::decimal_si);
    static quantity of_milli(std::int64_t milli);

    /// code::invalid with the API server's words when the text is no quantity or its value does not fit.
    static result<quantity> parse(std::string_view text);

    /// Whole units, rounded up (bytes, cores). [any]
    std::int64_t units() const;
    /// Thousandths, rounded up; INT64_MAX past its range.
    std::int64_t milli() const;
    bool is_zero() const { return nano_ == 0; }
    bool is_negative() const { return nano_ < 0; }
    bool is_whole() const;
    /// ceil(this / divisor); 0 for a zero divisor.
    std::int64_t divided_by(const quantity& divisor) const;
    /// The smallest number of whole digits before one suffix: "1500m", "64Mi", "0".
    std::string to_string() const;

    quantity& operator+=(const quantity& other);
    friend quantity operator+(quantity a, const quantity& b) { return a += b; }
    friend bool operator==(const quantity& a, const quantity& b) { return a.nano_ == b.nano_; }
    friend auto operator<=>(const quantity& a, const quantity& b) { return a.nano_ <=> b.nano_; }

private:
    __extension__ typedef __int128 wide;

    wide nano_ = 0;
    format format_ = format::decimal_si;
};

} // namespace gantry::model
