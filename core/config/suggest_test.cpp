#include "core/config/suggest.hpp"

#include <gtest/gtest.h>

namespace gantry::core {
namespace {

TEST(suggest, finds_the_nearest_word) {
    const std::vector<std::string> words{"stateDir", "runDir", "socket"};
    EXPECT_EQ(suggest("stateDri", words), "stateDir"); // a swap
    EXPECT_EQ(suggest("statedir", words), "stateDir"); // case
    EXPECT_EQ(suggest("sockets", words), "socket");
}

TEST(suggest, stays_silent_when_nothing_is_near) {
    EXPECT_EQ(suggest("kubelet", {"stateDir", "runDir"}), "");
    EXPECT_EQ(suggest(std::string(100'000, 'a'), {std::string(100'000, 'a')}), "");
    EXPECT_EQ(did_you_mean("x", {}), "");
}

} // namespace
} // namespace gantry::core
