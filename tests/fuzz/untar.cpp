// Arbitrary bytes as a layer. Needs root and /dev/shm.
#include <fcntl.h>
#include <stdlib.h>

#include <cstdint>
#include <string>

#include "base/files.hpp"
#include "base/unique_fd.hpp"
#include "plugins/cri-native/helper/untar.hpp"

using namespace gantry;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bool prepared = cri_helper::prepare_untar().ok();
    char dir[] = "/dev/shm/gantry-fuzz-XXXXXX";
    if (!prepared || ::mkdtemp(dir) == nullptr) abort();
    {
        const base::unique_fd root(::open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        cri_helper::budget usage;
        usage.byte_limit = 1u << 20;
        usage.inode_limit = 1000;
        cri_helper::applier layer(root.get(), usage, {.user_xattr = false, .device_nodes = false});
        std::string_view rest(reinterpret_cast<const char*>(data), size);
        static_cast<void>(cri_helper::untar(
            [&]() -> result<std::string_view> {
                const auto piece = rest.substr(0, 512);
                rest.remove_prefix(piece.size());
                return piece;
            },
            layer));
    }
    if (!base::remove_tree(dir)) abort();
    return 0;
}
