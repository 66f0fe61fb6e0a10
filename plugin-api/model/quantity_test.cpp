#include "gantry/model/quantity.hpp"

#include <initializer_list>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

using gantry::model::quantity;

namespace {

quantity of(std::string_view text) {
    auto parsed = quantity::parse(text);
    EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().message);
    return parsed ? *parsed : quantity();
}

TEST(quantity, reads_every_suffix_exactly) {
    EXPECT_EQ(of("64Mi").units(), 64ll << 20);
    EXPECT_EQ(of("0.5Gi").units(), 512ll << 20);
    EXPECT_EQ(of("9Ti").units(), 9895604649984);
    EXPECT_EQ(of("1.5").milli(), 1500);
    EXPECT_EQ(of("250m").milli(), 250);
    EXPECT_EQ(of("1e3").units(), 1000);
    EXPECT_EQ(of("12E-1").milli(), 1200);
    EXPECT_EQ(of("1E").units(), 1'000'000'000'000'000'000);
    EXPECT_EQ(of("7Ei").units(), 7ll << 60);
    EXPECT_EQ(of(".5").milli(), 500);
    EXPECT_EQ(of("5.").units(), 5);
    EXPECT_EQ(of("+3k").units(), 3000);
    EXPECT_EQ(of("-1").units(), -1);
}

TEST(quantity, rounds_up_when_whole_units_are_asked_for) {
    EXPECT_EQ(of("1m").units(), 1);
    EXPECT_EQ(of("1u").milli(), 1);
    EXPECT_EQ(of("1500m").units(), 2);
    EXPECT_EQ(of("33Mi").divided_by(of("1M")), 35);
    EXPECT_EQ(of("65Mi").divided_by(of("1Gi")), 1);
    EXPECT_EQ(of("60m").divided_by(of("1m")), 60);
}

TEST(quantity, prints_the_canonical_form) {
    for (const auto& [text, canonical] : std::initializer_list<std::pair<const char*, const char*>>{
             {"1000m", "1"},
             {"1500m", "1500m"},
             {"0.1", "100m"},
             {"1024Mi", "1Gi"},
             {"1.5Gi", "1536Mi"},
             {"1024", "1024"},
             {"2000", "2k"},
             {"100Mi", "100Mi"},
             {"1e3", "1e3"},
             {"0Mi", "0"},
             {"12345678n", "12345678n"},
             {"-2Ki", "-2Ki"},
             {"0.5Ki", "512"}})
        EXPECT_EQ(of(text).to_string(), canonical) << text;
}

TEST(quantity, refuses_what_is_no_quantity_in_the_api_servers_words) {
    const auto why = [](std::string_view text) {
        const auto parsed = quantity::parse(text);
        return parsed ? "accepted" : parsed.error().message;
    };
    for (const auto* text : {"1x", "", "-", "1 Mi", "1..2", "Mi", "1e+", "0x10", "1Mi ", "1MiB"})
        EXPECT_EQ(why(text), "quantities must match the regular expression "
                             "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
            << text;
    for (const auto* text : {"1Kii", "1mi", "1KM", "1e"}) EXPECT_EQ(why(text), "unable to parse quantity's suffix") << text;
}

TEST(quantity, refuses_instead_of_capping) {
    for (const auto* text : {"9223372036854775808", "8Ei", "10E", "1e19", "1e400", "99999999999999999999999999999999999999999"})
        EXPECT_FALSE(quantity::parse(text)) << text;
    EXPECT_EQ(of("9223372036854775807").units(), std::numeric_limits<std::int64_t>::max());
    EXPECT_FALSE(quantity::parse("0.1n"));
    EXPECT_EQ(of("0e400").units(), 0);
}

TEST(quantity, compares_and_adds_by_value_whatever_the_format) {
    EXPECT_EQ(of("1Gi"), of("1073741824"));
    EXPECT_LT(of("999m"), of("1"));
    EXPECT_EQ((of("100m") + of("0.9")).to_string(), "1");
    EXPECT_EQ((of("64Mi") + of("32Mi")).to_string(), "96Mi");
}

} // namespace
