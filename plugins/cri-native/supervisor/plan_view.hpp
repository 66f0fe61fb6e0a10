// A plan as it lies in the sealed memfd that the plugin sent, mapped read-only.
#pragma once

#include <cstddef>

#include "plugins/cri-native/launch/wire.hpp"

namespace gantry::cri_native::supervisor {

namespace wire = launch::wire;

class plan_view {
public:
    plan_view() = default;
    /// A plan that lies elsewhere: plan_header, then records.
    plan_view(const char* data, std::size_t size) noexcept : data_(data), size_(size) {}

    /// Maps the plan in fd. Refuses one that is not sealed (it could change under us), too large, of another kind, or
    /// with a record that this build must understand and does not: errno tells, `detail` names it.
    bool map(int fd, wire::plan_kind kind, const char** detail) noexcept;
    void unmap() noexcept;

    wire::records all() const noexcept {
        if (size_ <= sizeof(wire::plan_header)) return {data_, 0};
        return {data_ + sizeof(wire::plan_header), size_ - sizeof(wire::plan_header)};
    }
    /// The first record of a tag; an empty one if there is none.
    wire::fields first(wire::tag t) const noexcept;
    std::size_t count(wire::tag t) const noexcept;
    /// fn(fields) for every record of a tag, in order.
    template <class Fn>
    void each(wire::tag t, Fn fn) const noexcept {
        for (auto r = all(); r.next();)
            if (r.is(t)) fn(r.body());
    }

private:
    const char* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace gantry::cri_native::supervisor
