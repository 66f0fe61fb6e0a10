// Arbitrary text as an image's user, /etc/passwd and /etc/group, one after the other between NUL bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plugins/cri-native/runtime/spec/user.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace gantry::cri_native;
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    const auto next = [&] {
        const auto part = rest.substr(0, rest.find('\0'));
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
        return part;
    };
    user_request request;
    request.image_user = next();
    const auto passwd = next();
    const auto group = next();
    const auto who = resolve_user(request, passwd, group);
    if (!who && who.error().message.empty()) abort();
    return 0;
}
