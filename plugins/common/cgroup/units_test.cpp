#include "plugins/common/cgroup/units.hpp"

#include <gtest/gtest.h>

namespace gantry::cgroup {

TEST(cgroup_units, shares_follow_the_request_within_the_kernels_range) {
    EXPECT_EQ(shares_of_milli(0), 2u);
    EXPECT_EQ(shares_of_milli(-5), 2u);
    EXPECT_EQ(shares_of_milli(1), 2u);
    EXPECT_EQ(shares_of_milli(100), 102u);
    EXPECT_EQ(shares_of_milli(1000), 1024u);
    EXPECT_EQ(shares_of_milli(256'000), 262'144u);
    EXPECT_EQ(shares_of_milli(INT64_MAX), 262'144u);
}

TEST(cgroup_units, weight_is_linear_over_the_shares) {
    EXPECT_EQ(weight_of_shares(0), 1u);
    EXPECT_EQ(weight_of_shares(2), 1u);
    EXPECT_EQ(weight_of_shares(102), 4u);
    EXPECT_EQ(weight_of_shares(1024), 39u);
    EXPECT_EQ(weight_of_shares(262'144), 10'000u);
    EXPECT_EQ(weight_of_shares(999'999), 10'000u);
}

TEST(cgroup_units, a_weight_gives_back_the_request_but_for_its_grain) {
    EXPECT_EQ(milli_of_weight(1), 0);
    for (const std::int64_t milli : {100, 250, 1000, 64'000, 256'000}) {
        EXPECT_NEAR(milli_of_weight(weight_of_shares(shares_of_milli(milli))), milli, 14) << milli;
        EXPECT_EQ(weight_of_shares(shares_of_milli(milli_of_weight(weight_of_shares(shares_of_milli(milli))))),
                  weight_of_shares(shares_of_milli(milli)));
    }
}

TEST(cgroup_units, quota_is_exact_and_never_below_what_the_kernel_takes) {
    EXPECT_EQ(quota_of_milli(0), unlimited);
    EXPECT_EQ(quota_of_milli(-1), unlimited);
    EXPECT_EQ(quota_of_milli(1), 1000);
    EXPECT_EQ(quota_of_milli(10), 1000);
    EXPECT_EQ(quota_of_milli(51), 5100);
    EXPECT_EQ(quota_of_milli(4096), 409'600);
    EXPECT_EQ(quota_of_milli(4096, 10'000), 40'960);
    EXPECT_EQ(quota_of_milli(INT64_MAX), INT64_MAX);
}

TEST(cgroup_units, a_pod_never_gets_less_quota_than_its_containers) {
    for (std::int64_t container = 1; container < 5000; container += 7)
        EXPECT_GE(quota_of_milli(3 * container), quota_of_milli(container)) << container;
}

TEST(cgroup_units, burstable_oom_score_lies_between_guaranteed_and_best_effort) {
    EXPECT_EQ(burstable_oom_score(0, 1000), 999);
    EXPECT_EQ(burstable_oom_score(500, 1000), 500);
    EXPECT_EQ(burstable_oom_score(1000, 1000), 3);
    EXPECT_EQ(burstable_oom_score(std::int64_t{1} << 60, std::int64_t{1} << 61), 500);
    EXPECT_EQ(burstable_oom_score(1, 0), 999);
}

} // namespace gantry::cgroup
