// Several plugins in one library, and a library that is linked into the program.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gantry/sdk/fake_host.h"
#include "gantry/sdk/plugin.hpp"

GANTRY_PLUGIN_STATIC(pair)

namespace gantry::sdk_test {
namespace {

std::string json_of(const gantry_note_header* header) {
    return {reinterpret_cast<const char*>(header + 1), header->json_size};
}

TEST(library, static_form_is_found_by_name) {
    const auto& list = sdk::static_plugins();
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].name, "pair");
    EXPECT_EQ(list[0].main()->plugin_count, 2u);
}

TEST(library, each_plugin_has_its_note_and_its_instances) {
    const auto* entry = sdk::static_plugins()[0].main();
    EXPECT_EQ(entry->struct_size, sizeof(gantry_plugin_entry));
    EXPECT_EQ(entry->abi_major, GANTRY_ABI_MAJOR);
    EXPECT_THAT(json_of(entry->descriptor(0)), ::testing::HasSubstr("dev.gantry.first"));
    EXPECT_THAT(json_of(entry->descriptor(1)), ::testing::HasSubstr("dev.gantry.second"));
    for (std::uint32_t index : {0u, 1u}) {
        fake::host host;
        fake::plugin plugin(host, entry, index);
        ASSERT_TRUE(plugin.start().ok());
        EXPECT_TRUE(host.logged(index == 0 ? "first" : "second"));
    }
}

} // namespace
} // namespace gantry::sdk_test
