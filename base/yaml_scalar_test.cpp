#include "base/yaml_scalar.hpp"

#include <gtest/gtest.h>

namespace gantry::base {

namespace {

json::value plain(std::string_view text) {
    auto value = resolve_plain_scalar(text);
    return value ? *std::move(value) : json::value("error: " + value.error().message);
}

} // namespace

TEST(yaml_plain_scalar, reads_the_booleans_a_kubelet_reads) {
    for (const auto* word : {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
        EXPECT_EQ(plain(word), json::value(true)) << word;
    for (const auto* word : {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
        EXPECT_EQ(plain(word), json::value(false)) << word;
    for (const auto* word : {"yES", "tRUE", "oN", "enabled", "t", "f"})
        EXPECT_EQ(plain(word), json::value(word)) << word;
}

TEST(yaml_plain_scalar, reads_null_in_its_four_spellings) {
    for (const auto* word : {"", "~", "null", "Null", "NULL"}) EXPECT_TRUE(plain(word).is_null()) << word;
    EXPECT_EQ(plain("nULL"), json::value("nULL"));
}

TEST(yaml_plain_scalar, reads_file_modes_as_octal) {
    EXPECT_EQ(plain("0644"), json::value(420));
    EXPECT_EQ(plain("0o644"), json::value(420));
    EXPECT_EQ(plain("-010"), json::value(-8));
    EXPECT_EQ(plain("08"), json::value(8)); // no octal: a float to Go, and JSON prints that as 8
}

TEST(yaml_plain_scalar, reads_integers_over_the_whole_64_bit_range) {
    EXPECT_EQ(plain("0"), json::value(0));
    EXPECT_EQ(plain("-0"), json::value(0));
    EXPECT_EQ(plain("+17"), json::value(17));
    EXPECT_EQ(plain("1_000_000"), json::value(1'000'000));
    EXPECT_EQ(plain("0xff"), json::value(255));
    EXPECT_EQ(plain("0b101"), json::value(5));
    EXPECT_EQ(plain("9223372036854775807"), json::value(INT64_MAX));
    EXPECT_EQ(plain("-9223372036854775808"), json::value(INT64_MIN));
    EXPECT_EQ(plain("18446744073709551615"), json::value(UINT64_MAX));
    EXPECT_TRUE(plain("18446744073709551616").is_double());
    EXPECT_TRUE(plain("-9223372036854775809").is_double());
}

TEST(yaml_plain_scalar, reads_floats_and_makes_integral_ones_integers) {
    EXPECT_EQ(plain("0.5"), json::value(0.5));
    EXPECT_EQ(plain(".5"), json::value(0.5));
    EXPECT_EQ(plain("-1.25e-2"), json::value(-0.0125));
    EXPECT_EQ(plain("1.0"), json::value(1));
    EXPECT_EQ(plain("1e3"), json::value(1000));
    EXPECT_EQ(plain("1."), json::value(1));
    EXPECT_EQ(plain("+2.5"), json::value(2.5));
}

TEST(yaml_plain_scalar, leaves_what_only_resembles_a_number_as_text) {
    for (const auto* text : {"1.2.3", "10.0.0.1", "500m", "1Gi", "0x", "0xgg", "0b2", "1e", "-", "+", ".", "..", "-.",
                             "1-2", "12:30", "2026-01-02", "2026-01-02T03:04:05Z", "1e999", "0o9"})
        EXPECT_EQ(plain(text), json::value(text)) << text;
}

TEST(yaml_plain_scalar, refuses_numbers_json_cannot_hold) {
    for (const auto* text : {".nan", ".inf", "-.INF", "+.Inf"}) EXPECT_FALSE(resolve_plain_scalar(text)) << text;
}

TEST(yaml_tagged_scalar, takes_the_core_tags_and_only_text_that_fits_them) {
    const auto tagged = [](const char* tag, const char* text) {
        return resolve_tagged_scalar(std::string("tag:yaml.org,2002:") + tag, text);
    };
    EXPECT_EQ(*tagged("str", "123"), json::value("123"));
    EXPECT_EQ(*tagged("int", "0x10"), json::value(16));
    EXPECT_EQ(*tagged("bool", "on"), json::value(true));
    EXPECT_EQ(*tagged("float", "2"), json::value(2));
    EXPECT_TRUE(tagged("null", "~")->is_null());
    EXPECT_FALSE(tagged("int", "1.5"));
    EXPECT_FALSE(tagged("bool", "maybe"));
    EXPECT_FALSE(tagged("binary", "aGk="));
    EXPECT_FALSE(resolve_tagged_scalar("!secret", "x"));
}

} // namespace gantry::base
