#include "plugins/cri-native/runtime/spec/process.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cri_native {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using words = std::vector<std::string>;

TEST(merge_command, follows_the_table_of_kubernetes) {
    const words entry{"/entry"};
    const words cmd{"serve"};
    EXPECT_THAT(*merge_command({}, {}, entry, cmd, "i"), ElementsAre("/entry", "serve"));
    EXPECT_THAT(*merge_command({"/my"}, {}, entry, cmd, "i"), ElementsAre("/my"));
    EXPECT_THAT(*merge_command({}, {"arg"}, entry, cmd, "i"), ElementsAre("/entry", "arg"));
    EXPECT_THAT(*merge_command({"/my"}, {"arg"}, entry, cmd, "i"), ElementsAre("/my", "arg"));
    EXPECT_THAT(*merge_command({}, {}, {}, cmd, "i"), ElementsAre("serve"));
}

TEST(merge_command, reads_one_empty_entrypoint_as_none) {
    EXPECT_THAT(*merge_command({}, {}, {""}, {"nginx", "-g", "daemon off;"}, "i"),
                ElementsAre("nginx", "-g", "daemon off;"));
    EXPECT_THAT(*merge_command({}, {"sh"}, {""}, {"nginx"}, "i"), ElementsAre("sh"));
}

TEST(merge_command, says_when_nothing_is_left_to_run) {
    const auto argv = merge_command({}, {}, {}, {}, "example:1");
    ASSERT_FALSE(argv);
    EXPECT_EQ(argv.error().code, code::invalid);
    EXPECT_THAT(argv.error().message, HasSubstr("no command specified"));
    EXPECT_THAT(argv.error().message, HasSubstr("example:1"));
    EXPECT_FALSE(merge_command({}, {}, {""}, {}, "i"));
    EXPECT_FALSE(merge_command({""}, {"x"}, {}, {}, "i"));
}

TEST(merge_command, refuses_nul_bytes) { EXPECT_FALSE(merge_command({"sh", std::string("a\0b", 3)}, {}, {}, {}, "i")); }

TEST(merge_environment, gives_a_default_path) {
    const auto env = merge_environment({});
    ASSERT_TRUE(env);
    EXPECT_THAT(*env, ElementsAre("PATH=" + std::string(default_path)));
}

TEST(merge_environment, lets_the_image_replace_ours_and_the_request_replace_the_image) {
    const auto env = merge_environment({.hostname = "pod",
                                        .tty = true,
                                        .home = "/root",
                                        .image_env = {"PATH=/bin", "A=image", "B=image", "HOME=/srv"},
                                        .variables = {{"A", "request"}, {"C", "1"}, {"C", "2"}}});
    ASSERT_TRUE(env);
    EXPECT_THAT(*env,
                ElementsAre("PATH=/bin", "HOSTNAME=pod", "TERM=xterm", "A=request", "B=image", "HOME=/srv", "C=2"));
}

TEST(merge_environment, exports_home_of_the_user) {
    EXPECT_THAT(*merge_environment({.home = "/home/app"}), Contains("HOME=/home/app"));
}

TEST(merge_environment, passes_bytes_that_are_no_text) {
    EXPECT_THAT(*merge_environment({.variables = {{"RAW", "\xff\xfe"}}}), Contains("RAW=\xff\xfe"));
}

TEST(merge_environment, skips_what_an_image_cannot_mean) {
    EXPECT_THAT(*merge_environment({.image_env = {"=x", "NOVALUE", std::string("N=\0", 3)}}), testing::SizeIs(1));
}

TEST(merge_environment, refuses_names_and_values_that_exec_cannot_pass) {
    EXPECT_FALSE(merge_environment({.variables = {{"", "x"}}}));
    EXPECT_FALSE(merge_environment({.variables = {{"A=B", "x"}}}));
    EXPECT_FALSE(merge_environment({.variables = {{"A", std::string("\0", 1)}}}));
}

TEST(find_variable, does_not_take_a_prefix_for_the_name) {
    const words env{"PATHS=/x", "PATH=/bin"};
    EXPECT_EQ(find_variable(env, "PATH"), "/bin");
    EXPECT_EQ(find_variable(env, "PAT"), std::nullopt);
}

TEST(check_exec_size, names_the_variable_that_is_too_long) {
    const auto fits = check_exec_size({"sh"}, {"BIG=" + std::string(200'000, 'x')}, 8u << 20);
    ASSERT_FALSE(fits);
    EXPECT_THAT(fits.error().message, HasSubstr("BIG"));
    EXPECT_THAT(fits.error().message, HasSubstr("131071"));
}

TEST(check_exec_size, says_total_limit_and_the_usual_cause) {
    words env;
    for (int i = 0; i < 20'000; ++i) env.push_back("SERVICE_" + std::to_string(i) + "_PORT=" + std::string(100, '1'));
    const auto fits = check_exec_size({"sh"}, env, 8u << 20);
    ASSERT_FALSE(fits);
    EXPECT_THAT(fits.error().message, HasSubstr("2097152"));
    EXPECT_THAT(fits.error().message, HasSubstr("enableServiceLinks"));
    EXPECT_TRUE(check_exec_size({"sh"}, env, 64u << 20));
}

TEST(check_exec_size, allows_arg_max_under_any_stack_limit) {
    EXPECT_TRUE(check_exec_size({"sh"}, {"A=" + std::string(100'000, 'x')}, 4096));
}

TEST(parse_signal, reads_names_numbers_and_real_time_offsets) {
    EXPECT_EQ(parse_signal("SIGTERM"), SIGTERM);
    EXPECT_EQ(parse_signal("quit"), SIGQUIT);
    EXPECT_EQ(parse_signal("15"), 15);
    EXPECT_EQ(parse_signal("SIGRTMIN"), 34);
    EXPECT_EQ(parse_signal("SIGRTMIN+3"), 37);
    EXPECT_EQ(parse_signal("RTMAX-1"), 63);
    EXPECT_EQ(parse_signal("SIGCONT"), SIGCONT);
    for (const auto* text : {"", "0", "65", "SIG", "SIGFOO", "RTMIN-1", "RTMAX+1", "RTMIN+31", "15x", "-9"})
        EXPECT_EQ(parse_signal(text), 0) << text;
}

} // namespace
} // namespace gantry::cri_native
