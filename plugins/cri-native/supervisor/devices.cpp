#include "plugins/cri-native/supervisor/devices.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "plugins/cri-native/supervisor/target.hpp"

namespace gantry::cri_native::supervisor {

void add_device_links(const child& c, int dev) noexcept {
    static constexpr const char* links[][2] = {
        {"/proc/self/fd", "fd"},       {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
        {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"},         {"/proc/kcore", "core"},
    };
    for (const auto& link : links)
        if (::symlinkat(link[0], dev, link[1]) != 0) c.fail(step::device, errno, link[1]);
}

void make_devices(const child& c, int root) noexcept {
    c.plan.each(wire::tag::device, [&](wire::fields f) {
        const text path = f.text();
        const mode_t type = f.u32() == 'b' ? S_IFBLK : S_IFCHR;
        const unsigned major_number = f.u32();
        const unsigned minor_number = f.u32();
        const mode_t mode = f.u32() & 07777;
        const uid_t uid = f.u32();
        const gid_t gid = f.u32();
        char name[256];
        const sys::fd parent(open_parent(root, path, name, sizeof name));
        if (!parent) c.fail(step::device, errno, path);
        if (::mknodat(parent.get(), name, type | mode, makedev(major_number, minor_number)) != 0)
            c.fail(step::device, errno, path);
        if (::fchownat(parent.get(), name, uid, gid, AT_SYMLINK_NOFOLLOW) != 0) c.fail(step::device, errno, path);
    });
}

} // namespace gantry::cri_native::supervisor
