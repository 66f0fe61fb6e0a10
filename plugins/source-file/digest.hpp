// 128-bit FNV-1a of JSON values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace gantry::source_file {

class fnv128 {
public:
    void add(std::string_view bytes);
    /// Equal for values that are equal, whatever the order of their keys.
    void add_value(const base::json::value& value);
    std::string hex() const;

private:
    __extension__ typedef unsigned __int128 wide;
    static constexpr wide word(std::uint64_t high, std::uint64_t low) { return wide{high} << 64 | low; }

    wide state_ = word(0x6c62272e07bb0142, 0x62b821756295c58d);
};

} // namespace gantry::source_file
