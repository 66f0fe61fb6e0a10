#include "plugins/cri-native/launch/client.hpp"
#include "plugins/cri-native/launch/embedded.hpp"
#include "plugins/cri-native/launch/memfd.hpp"

namespace gantry::cri_native::launch {

result<supervisor_image> supervisor_image::make() {
    GANTRY_TRY(auto fd, make_sealed("gantry-supervisor", embedded_supervisor(), memfd_use::program));
    return supervisor_image(std::move(fd));
}

} // namespace gantry::cri_native::launch
