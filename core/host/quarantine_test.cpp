#include "core/host/quarantine.hpp"

#include <gtest/gtest.h>

namespace gantry::core {
namespace {

constexpr std::int64_t second = 1'000'000'000;
const loading_mark mark{.instance = "acme", .id = "com.acme.gpu", .sha256 = "ab12", .boot_id = "boot-1", .unix_ns = 100 * second};

std::vector<std::string> blamed(const std::vector<verdict>& verdicts) {
    std::vector<std::string> names;
    for (const auto& verdict : verdicts) names.push_back(verdict.instance);
    return names;
}
using names = std::vector<std::string>;

TEST(quarantine, a_mark_that_still_stands_names_the_plugin) {
    const auto verdicts = judge_crashes(parse_mark(format_mark(mark)), {}, "boot-1");
    ASSERT_EQ(blamed(verdicts), names{"acme"});
    EXPECT_EQ(verdicts[0].reason, "the node ended while this plugin (com.acme.gpu, sha256 ab12) was loaded: replace it and run `gantry "
                                  "plugin enable acme`");
}

TEST(quarantine, a_power_cut_is_no_ones_fault) { EXPECT_EQ(blamed(judge_crashes(mark, {}, "boot-2")), names{}); }

TEST(quarantine, a_mark_does_not_count_when_another_plugin_crashed_meanwhile) {
    EXPECT_EQ(blamed(judge_crashes(mark, {{101 * second, "SIGSEGV", "other", "timer"}}, "boot-1")), names{});
    EXPECT_EQ(blamed(judge_crashes(mark, {{99 * second, "SIGSEGV", "other", "timer"}}, "boot-1")), names{"acme"});
    EXPECT_EQ(blamed(judge_crashes(mark, {{101 * second, "SIGSEGV", "acme", "init"}}, "boot-1")), names{"acme"});
}

TEST(quarantine, three_crashes_within_a_minute_are_enough) {
    const auto crashes = [](std::vector<std::int64_t> times) {
        std::vector<crash_record> records;
        for (const auto time : times) records.push_back({time * second, "SIGSEGV", "acme", "add"});
        return records;
    };
    EXPECT_EQ(blamed(judge_crashes({}, crashes({10, 30}), "b")), names{});
    EXPECT_EQ(blamed(judge_crashes({}, crashes({10, 40, 71}), "b")), names{});
    EXPECT_EQ(blamed(judge_crashes({}, crashes({10, 40, 70}), "b")), names{"acme"});
    EXPECT_EQ(blamed(judge_crashes({}, crashes({10, 500, 530, 540}), "b")), names{"acme"});
    auto shared = crashes({10, 20});
    shared.push_back({15 * second, "exit", "other", "init"});
    EXPECT_EQ(blamed(judge_crashes({}, shared, "b")), names{});
    EXPECT_EQ(judge_crashes({}, crashes({1, 2, 3}), "b")[0].reason,
              "it ended the node 3 times within 60 s, last by SIGSEGV in add: replace it and run `gantry plugin enable acme`");
}

TEST(quarantine, a_log_that_was_cut_short_keeps_its_whole_lines) {
    const auto records = parse_crashes("5 SIGBUS a add\nnonsense\n7 exit b");
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(format_crashes(records), "5 SIGBUS a add\n");
    EXPECT_FALSE(parse_mark("loading a b"));
    EXPECT_FALSE(parse_mark(""));
}

} // namespace
} // namespace gantry::core
