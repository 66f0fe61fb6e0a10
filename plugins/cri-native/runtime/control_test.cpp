#include "plugins/cri-native/runtime/control.hpp"

#include <gtest/gtest.h>

namespace gantry::cri_native {
namespace {

TEST(parse_control, reads_sizes_and_signals) {
    const auto size = parse_control(R"({"resize":{"width":120,"height":40}})");
    ASSERT_TRUE(size);
    EXPECT_EQ(size->columns, 120);
    EXPECT_EQ(size->rows, 40);
    EXPECT_EQ(size->signal, 0);
    const auto signal = parse_control("{\"signal\":2}\n");
    ASSERT_TRUE(signal);
    EXPECT_EQ(signal->signal, 2);
    EXPECT_EQ(signal->columns, 0);
}

TEST(parse_control, ignores_the_rest) {
    for (const auto* line : {"", "{}", "[]", "{\"signal\":0}", "{\"signal\":65}", "{\"signal\":\"9\"}",
                             "{\"resize\":{\"width\":0,\"height\":1}}", "{\"resize\":{\"width\":70000,\"height\":1}}",
                             "{\"resize\":5}", "{\"resize\":{\"width\":1}}"})
        EXPECT_FALSE(parse_control(line)) << line;
}

} // namespace
} // namespace gantry::cri_native
