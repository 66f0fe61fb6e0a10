#include <cstdio>
#include <cstdlib>
#include <string>

#include "gantry/abi/draft/image_gc.h"
#include "gantry/sdk/fake_host.h"

extern "C" const gantry_plugin_entry* gantry_plugin_main_largest_first(void);

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                       \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (false)

namespace {
std::string request(const char* available) {
    return std::string(R"({"now": 1, "fs": {"capacityBytes": 1000, "availableBytes": )") + available +
           R"(}, "images": [{"id": "small", "sizeBytes": 10}, {"id": "large", "sizeBytes": 300}]})";
}
} // namespace

int main() {
    gantry::fake::host host;
    gantry::fake::plugin plugin(host, gantry_plugin_main_largest_first());
    EXPECT(plugin.start().ok());
    const auto* gc = plugin.capability<gantry_image_gc>(GANTRY_IMAGE_GC);

    EXPECT(plugin.call(gc->rank, {request("500")}).bytes == R"({"remove":[],"targetBytes":0})");
    const auto full = plugin.call(gc->rank, {request("100")}).bytes;
    EXPECT(full.find(R"("targetBytes":100)") != std::string::npos);
    EXPECT(full.find("large") < full.find("small"));
    EXPECT(plugin.call(gc->rank, {"no JSON"}).error.code == GANTRY_INVALID);

    EXPECT(!plugin.config_check(R"({"highPercent": 50, "lowPercent": 60})").ok());
    EXPECT(plugin.config_apply(R"({"highPercent": 40, "lowPercent": 30})").ok());
    EXPECT(plugin.call(gc->rank, {request("500")}).bytes.find(R"("targetBytes":200)") != std::string::npos);
    plugin.stop();
    EXPECT(host.misbehaviour().empty());
}
