// A node with one pod: what most tests of containers begin with.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "tests/cri-native/harness.hpp"

namespace gantry::cri_native::testing {

class one_pod : public ::testing::Test {
protected:
    void SetUp() override {
        auto pod = node_.run_pod(node_.pod("web"));
        ASSERT_TRUE(pod) << pod.error().message;
        pod_ = *pod;
    }

    node node_;
    std::string pod_; ///< id of its sandbox
};

} // namespace gantry::cri_native::testing
