// largest-first: an image GC policy that frees space with the fewest removals.
#include <string_view>

#include "gantry/abi/draft/image_gc.h"
#include "gantry/sdk/plugin.hpp"
#include "plan.hpp"

namespace largest_first {
namespace {

using gantry::result;
namespace sdk = gantry::sdk;

class plugin {
public:
    result<void> init(sdk::host& host) { return config_apply(host.config_json()); }

    result<void> config_check(std::string_view json) {
        GANTRY_CHECK(read_limits(json));
        return {};
    }
    result<void> config_apply(std::string_view json) {
        GANTRY_TRY(limits_, read_limits(json));
        return {};
    }

    // A decision of microseconds: on the lane, where config_apply runs too.
    void rank(sdk::request request, sdk::op op) {
        auto decided = plan(request.bytes, limits_);
        op.complete(decided ? result<sdk::reply>(sdk::reply{.bytes = *std::move(decided)})
                            : result<sdk::reply>(std::move(decided).error()));
    }

    static const void* capability(std::string_view id) {
        static constexpr auto gc = sdk::capability<gantry_image_gc>([](auto& table) { table.rank = sdk::op_fn<&plugin::rank>; });
        return id == GANTRY_IMAGE_GC ? &gc : nullptr;
    }

private:
    limits limits_;
};

} // namespace
} // namespace largest_first

// clang-format off
GANTRY_PLUGIN(largest_first::plugin, {
    "id": "dev.gantry.example.largest-first",
    "name": "largest-first",
    "version": "1.0.0",
    "license": "Apache-2.0",
    "description": "Removes the largest unused images first",
    "capabilities": ["gantry.image-gc/1-draft"],
    "config": {
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "highPercent": {"type": "integer", "minimum": 1, "maximum": 100, "default": 85},
            "lowPercent": {"type": "integer", "minimum": 0, "maximum": 99, "default": 80}
        }
    }
})
