#include "core/host/metrics.hpp"

#include <gtest/gtest.h>

#include "core/host/plugin_metrics.hpp"
#include "gantry/abi/host.h"

namespace gantry::core {
namespace {

TEST(metrics, follow_the_text_format) {
    metrics_writer out;
    out.family("gantry_x_total", "counter", "What\nis counted.");
    out.sample("gantry_x_total", {{"instance", "a\"b\\c\nd"}}, 3);
    out.sample("gantry_x_total", {}, 0.5);
    EXPECT_EQ(out.take(), "# HELP gantry_x_total What\\nis counted.\n# TYPE gantry_x_total counter\n"
                          "gantry_x_total{instance=\"a\\\"b\\\\c\\nd\"} 3\ngantry_x_total 0.5\n");
}

TEST(metrics, histograms_are_cumulative) {
    latency_histogram histogram;
    histogram.observe(0.00001);
    histogram.observe(0.004);
    histogram.observe(1000);
    metrics_writer out;
    out.histogram("h", {{"op", "add"}}, histogram);
    const auto text = out.take();
    EXPECT_NE(text.find("h_bucket{op=\"add\",le=\"1e-05\"} 1\n"), std::string::npos) << text;
    EXPECT_NE(text.find("h_bucket{op=\"add\",le=\"0.005\"} 2\n"), std::string::npos) << text;
    EXPECT_NE(text.find("h_bucket{op=\"add\",le=\"100\"} 2\n"), std::string::npos) << text;
    EXPECT_NE(text.find("h_bucket{op=\"add\",le=\"+Inf\"} 3\n"), std::string::npos) << text;
    EXPECT_NE(text.find("h_count{op=\"add\"} 3\n"), std::string::npos) << text;
}

TEST(plugin_metrics, are_defined_once_and_only_during_init) {
    plugin_metrics metrics;
    const auto pulls = metrics.define(GANTRY_METRIC_COUNTER, "pulls", "Pulls.");
    EXPECT_GT(pulls, 0u);
    EXPECT_EQ(metrics.define(GANTRY_METRIC_GAUGE, "pulls", "Again."), 0u);
    EXPECT_EQ(metrics.define(GANTRY_METRIC_GAUGE, "Pulls", ""), 0u);
    EXPECT_EQ(metrics.define(GANTRY_METRIC_GAUGE, "a-b", ""), 0u);
    EXPECT_EQ(metrics.define(7, "kind", ""), 0u);
    metrics.freeze();
    EXPECT_EQ(metrics.define(GANTRY_METRIC_GAUGE, "late", ""), 0u);
    metrics.record(pulls, "docker.io", 2);
    metrics.record(pulls, "docker.io", 1);
    metrics.record(pulls, "docker.io", -5); // a counter never falls
    metrics.record(99, "", 1);
    EXPECT_EQ(metrics.snapshot()[0].values.at("docker.io"), 3);
}

TEST(plugin_metrics, bound_the_labels_a_plugin_can_make) {
    plugin_metrics metrics;
    const auto gauge = metrics.define(GANTRY_METRIC_GAUGE, "g", "");
    for (int i = 0; i < 5000; ++i) metrics.record(gauge, std::to_string(i), i);
    EXPECT_EQ(metrics.snapshot()[0].values.size(), 1000u);
}

} // namespace
} // namespace gantry::core
