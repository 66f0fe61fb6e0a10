#include "plugins/cri-native/launch/memfd.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#ifndef MFD_EXEC // Linux 6.3; without it vm.memfd_noexec may make the file unrunnable
#define MFD_EXEC 0x0010U
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace gantry::cri_native::launch {

result<base::unique_fd> make_sealed(const char* name, std::string_view bytes, memfd_use use) {
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    base::unique_fd fd(::memfd_create(name, flags | (use == memfd_use::program ? MFD_EXEC : MFD_NOEXEC_SEAL)));
    if (!fd && errno == EINVAL) fd.reset(::memfd_create(name, flags));
    if (!fd) return sys_error(std::string("memfd_create ") + name, errno);
    for (std::string_view left = bytes; !left.empty();) {
        const ssize_t n = ::write(fd.get(), left.data(), left.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return sys_error(std::string("write memfd ") + name, n == 0 ? ENOSPC : errno);
        left.remove_prefix(static_cast<std::size_t>(n));
    }
    if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return sys_error(std::string("seal memfd ") + name, errno);
    return fd;
}

} // namespace gantry::cri_native::launch
