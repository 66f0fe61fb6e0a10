#include "plugins/cri-native/runtime/settings.hpp"

#include <unistd.h>

#include <climits>

#include "base/json.hpp"

namespace gantry::cri_native {

result<settings> parse_settings(std::string_view json) {
    settings parsed;
    if (json.empty()) return parsed;
    GANTRY_TRY(const auto document, base::parse_json(json, "config of cri-native"));
    const auto* object = document.if_object();
    if (object == nullptr) return error{.code = code::invalid, .message = "config of cri-native is not an object"};
    const auto number = [&](const char* key, std::uint64_t unit, std::uint64_t& into) {
        if (const auto* value = object->if_contains(key); value != nullptr && value->is_number())
            into = value->to_number<std::uint64_t>() * unit;
    };
    parsed.image_dir = base::string_at(*object, "imageDir");
    parsed.helper_dir = base::string_at(*object, "helperDir");
    number("openFiles", 1, parsed.open_files);
    number("shmSizeMiB", 1u << 20, parsed.shm_bytes);
    return parsed;
}

result<std::string> find_helper(const settings& from, std::string_view name) {
    std::string tried;
    const auto usable = [&](const std::string& path) {
        if (::access(path.c_str(), X_OK) == 0) return true;
        tried += (tried.empty() ? "" : ", ") + path;
        return false;
    };
    if (!from.helper_dir.empty()) {
        std::string path = from.helper_dir + "/" + std::string(name);
        if (usable(path)) return path;
    } else {
        char exe[PATH_MAX];
        const ssize_t n = ::readlink("/proc/self/exe", exe, sizeof exe);
        if (n < 0) return sys_error("readlink /proc/self/exe", errno);
        std::string dir(exe, static_cast<std::size_t>(n));
        dir.resize(dir.rfind('/'));
        for (const char* place : {"/../" GANTRY_LIBDIR "/gantry/libexec", "/../lib/gantry/libexec"}) {
            std::string path = dir + place + "/" + std::string(name);
            if (usable(path)) return path;
        }
    }
    return error{.code = code::not_found,
                 .message = "the helper program " + std::string(name) + " is not in " + tried +
                            "; install it there or set helperDir of cri-native"};
}

} // namespace gantry::cri_native
