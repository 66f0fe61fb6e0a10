#include "core/host/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <memory>

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>

#include "gantry/abi/plugin.h"

namespace gantry::core {

namespace dll = boost::dll;

namespace {

error bad_entry(const std::string& origin, std::string_view what) {
    return {.code = code::invalid, .message = origin + ": " + std::string(what) + "; the plugin must be rebuilt"};
}

} // namespace

result<gantry_plugin_main_fn> load_library(const std::string& path, const std::string& origin) {
    try {
        // Leaked on purpose: the handle lives as long as the process.
        auto* library = new dll::shared_library(path, dll::load_mode::rtld_now | dll::load_mode::rtld_local);
        if (!library->has("gantry_plugin_main"))
            return bad_entry(origin, "it does not export gantry_plugin_main (is GANTRY_PLUGIN missing, or its visibility hidden?)");
        return &library->get<const gantry_plugin_entry*(void)>("gantry_plugin_main");
    } catch (const std::exception& e) {
        return error{.code = code::invalid,
                     .message = origin + " cannot be loaded: " + e.what() +
                                ": install what is missing, or a build of the plugin for this system"};
    }
}

result<const gantry_plugin_entry*> check_entry(gantry_plugin_main_fn main, const std::string& origin, const descriptor& expected,
                                               std::uint32_t index) {
    const auto* entry = main();
    if (!entry) return bad_entry(origin, "gantry_plugin_main returned nothing");
    if (entry->struct_size < sizeof(gantry_plugin_entry) || !entry->descriptor || !entry->create)
        return bad_entry(origin, "its entry is shorter than ABI 1.0 (struct_size " + std::to_string(entry->struct_size) + ") or lacks a function");
    if (entry->abi_major != GANTRY_ABI_MAJOR)
        return error{.code = code::unsupported,
                     .message = origin + ": its note says plugin ABI " + std::to_string(expected.abi_major) + ", its code says " +
                                std::to_string(entry->abi_major) + ", this gantry has " + std::to_string(GANTRY_ABI_MAJOR) + "." +
                                std::to_string(GANTRY_ABI_MINOR) + ": install a build of the plugin for ABI 1"};
    const auto* header = index < entry->plugin_count ? entry->descriptor(index) : nullptr;
    if (!header) return bad_entry(origin, "its code has no descriptor " + std::to_string(index) + ", its notes do");
    const std::string_view json(reinterpret_cast<const char*>(header + 1), header->json_size);
    if (json != expected.json || header->abi_major != expected.abi_major || header->needs_minor != expected.needs_minor)
        return bad_entry(origin, "descriptor " + std::to_string(index) + " of its code differs from its note");
    return entry;
}

std::vector<std::pair<const void*, const void*>> code_around(const void* address) {
    struct search {
        std::uintptr_t wanted;
        std::vector<std::pair<const void*, const void*>> found;
    } search{reinterpret_cast<std::uintptr_t>(address), {}};
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            auto& search = *static_cast<struct search*>(data);
            std::vector<std::pair<const void*, const void*>> segments;
            bool here = false;
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& segment = info->dlpi_phdr[i];
                if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
                const auto begin = info->dlpi_addr + segment.p_vaddr;
                const auto end = begin + segment.p_memsz;
                here = here || (search.wanted >= begin && search.wanted < end);
                segments.emplace_back(reinterpret_cast<const void*>(begin), reinterpret_cast<const void*>(end));
            }
            if (here) search.found = std::move(segments);
            return here ? 1 : 0;
        },
        &search);
    return search.found;
}

} // namespace gantry::core
