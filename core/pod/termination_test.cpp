#include "core/pod/termination.hpp"

#include "core/pod/pod_fixture.hpp"

namespace gantry::core {
namespace {

std::string record(const std::string& text, char tag = 'F') {
    return std::string("2026-01-02T03:04:05.000000006Z stdout ") + tag + " " + text + "\n";
}

TEST(termination_message, takes_the_programs_output_from_the_log) {
    EXPECT_EQ(log_tail(record("one") + record("tw", 'P') + record("o") + record("")), "one\ntwo\n\n");
    EXPECT_EQ(log_tail("ut F half a record\n" + record("whole")), "whole\n");
    EXPECT_EQ(log_tail(""), "");
}

TEST(termination_message, keeps_80_lines_and_2048_bytes) {
    std::string log;
    for (int i = 0; i < 100; ++i) log += record(std::to_string(i));
    const auto tail = log_tail(log);
    EXPECT_EQ(tail.substr(0, 3), "20\n");
    EXPECT_TRUE(tail.ends_with("99\n"));
    EXPECT_EQ(log_tail(record(std::string(5000, 'x'))).size(), 2048u);
}

TEST(termination_message, shares_12_kib_in_a_pod) {
    EXPECT_EQ(message_limit(testing::pod_with("Never", {"a"}).spec), 4096u);
    EXPECT_EQ(message_limit(testing::pod_with("Never", {"a", "b", "c"}, {"i"}).spec), 3072u);
}

TEST(termination_message, follows_the_runtimes_own) {
    EXPECT_EQ(joined_message("", "bye"), "bye");
    EXPECT_EQ(joined_message("exec failed", ""), "exec failed");
    EXPECT_EQ(joined_message("killed", "bye"), "killed: bye");
}

} // namespace
} // namespace gantry::core
