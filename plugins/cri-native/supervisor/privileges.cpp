#include "plugins/cri-native/supervisor/privileges.hpp"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

namespace gantry::cri_native::supervisor {

namespace {

constexpr std::size_t max_groups = 65536; // NGROUPS_MAX

void drop_bounding(const child& c, std::uint64_t keep) noexcept {
    for (int cap = 0; cap < 64; ++cap) {
        const int held = ::prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
        if (held < 0) return; // past the kernel's last capability
        if (held == 1 && (keep >> cap & 1) == 0 && ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
            c.fail(step::capabilities, errno, "bounding set");
    }
}

void set_groups(const child& c) noexcept {
    const std::size_t count = c.plan.count(wire::tag::group);
    if (count > max_groups) c.fail(step::user, EINVAL, "groups");
    gid_t* groups = nullptr;
    if (count != 0) {
        groups = static_cast<gid_t*>(sys::pages_new(count * sizeof(gid_t)));
        if (!groups) c.fail(step::memory, errno);
        std::size_t i = 0;
        c.plan.each(wire::tag::group, [&](wire::fields f) { groups[i++] = f.u32(); });
    }
    if (::syscall(SYS_setgroups, count, groups) != 0) c.fail(step::user, errno, "setgroups");
}

// What this process itself may hold: a plan cannot grant what the node lacks, and capset would refuse it all.
std::uint64_t permitted(const child& c) noexcept {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (::syscall(SYS_capget, &head, data) != 0) c.fail(step::capabilities, errno, "capget");
    return data[0].permitted | std::uint64_t{data[1].permitted} << 32;
}

void set_capabilities(const child& c, std::uint64_t wanted) noexcept {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    data[0].effective = data[0].permitted = static_cast<std::uint32_t>(wanted);
    data[1].effective = data[1].permitted = static_cast<std::uint32_t>(wanted >> 32);
    if (::syscall(SYS_capset, &head, data) != 0) c.fail(step::capabilities, errno, "capset");
}

} // namespace

void drop_to(const child& c, const process_record& process) noexcept {
    const std::uint64_t granted = process.capabilities & permitted(c);
    drop_bounding(c, granted);
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
        c.fail(step::capabilities, errno, "ambient set");
    if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) c.fail(step::capabilities, errno, "keep across the switch of user");
    set_groups(c);
    if (::syscall(SYS_setresgid, process.gid, process.gid, process.gid) != 0) c.fail(step::user, errno, "setresgid");
    if (::syscall(SYS_setresuid, process.uid, process.uid, process.uid) != 0) c.fail(step::user, errno, "setresuid");
    set_capabilities(c, granted);
}

void install_seccomp(const child& c) noexcept {
    const text filter = c.plan.first(wire::tag::seccomp).text();
    if (filter.empty()) return;
    const std::size_t length = filter.size / sizeof(sock_filter);
    auto* code = static_cast<sock_filter*>(sys::pages_new(filter.size));
    if (!code) c.fail(step::memory, errno);
    std::memcpy(code, filter.data, filter.size);
    if (filter.size % sizeof(sock_filter) != 0 || length > BPF_MAXINSNS) c.fail(step::seccomp, EINVAL);
    const sock_fprog program{static_cast<unsigned short>(length), code};
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) c.fail(step::seccomp, errno);
}

} // namespace gantry::cri_native::supervisor
