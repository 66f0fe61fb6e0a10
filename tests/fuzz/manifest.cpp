// Arbitrary text as a manifest: YAML, defaults, validation. What is accepted must be accepted again in its own JSON.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plugins/source-file/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace gantry;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto pods = source_file::read_manifest(text, "/m/a.yaml", "node", base::wall_time{});
    if (!pods) return pods.error().message.empty() ? abort(), 0 : 0;
    for (const auto& pod : *pods)
        if (!source_file::read_manifest(pod.json, "/m/a.json", "node", base::wall_time{})) abort();
    return 0;
}
