#include "plugins/cri-native/supervisor/plan_view.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace gantry::cri_native::supervisor {

namespace {

constexpr std::size_t max_plan = 64u << 20;
constexpr int required_seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

bool known(std::uint16_t tag) noexcept {
    const auto in = [tag](wire::tag from, wire::tag to) {
        return tag >= static_cast<std::uint16_t>(from) && tag <= static_cast<std::uint16_t>(to);
    };
    return tag >= wire::optional_tag || in(wire::tag::pod, wire::tag::own_cgroup_v2) ||
           in(wire::tag::argument, wire::tag::seccomp) || in(wire::tag::container_head, wire::tag::cgroup_head) ||
           in(wire::tag::exec_head, wire::tag::exec_head);
}

} // namespace

bool plan_view::map(int fd, wire::plan_kind kind, const char** detail) noexcept {
    *detail = "";
    const int seals = ::fcntl(fd, F_GET_SEALS);
    struct stat st {};
    if (seals < 0 || (seals & required_seals) != required_seals || ::fstat(fd, &st) != 0) {
        *detail = "the plan is not a sealed memfd";
        errno = EINVAL;
        return false;
    }
    const auto size = static_cast<std::size_t>(st.st_size);
    if (size < sizeof(wire::plan_header) || size > max_plan) {
        *detail = "the plan's size is out of bounds";
        errno = EINVAL;
        return false;
    }
    void* pages = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (pages == MAP_FAILED) return false;
    data_ = static_cast<const char*>(pages);
    size_ = size;
    wire::plan_header head;
    std::memcpy(&head, data_, sizeof head);
    if (head.magic != wire::magic || head.kind != static_cast<std::uint16_t>(kind) || head.length != size) {
        *detail = "the plan's header does not fit";
        unmap();
        errno = EINVAL;
        return false;
    }
    auto r = all();
    while (r.next())
        if (!known(r.raw_tag())) {
            *detail = "the plan asks for what this older supervisor cannot do";
            unmap();
            errno = EOPNOTSUPP;
            return false;
        }
    if (r.bad()) {
        *detail = "the plan's records do not hold together";
        unmap();
        errno = EINVAL;
        return false;
    }
    return true;
}

void plan_view::unmap() noexcept {
    if (data_) ::munmap(const_cast<char*>(data_), size_);
    data_ = nullptr;
    size_ = 0;
}

wire::fields plan_view::first(wire::tag t) const noexcept {
    for (auto r = all(); r.next();)
        if (r.is(t)) return r.body();
    return {};
}

std::size_t plan_view::count(wire::tag t) const noexcept {
    std::size_t n = 0;
    each(t, [&n](wire::fields) { ++n; });
    return n;
}

} // namespace gantry::cri_native::supervisor
