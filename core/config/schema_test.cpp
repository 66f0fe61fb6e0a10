#include "core/config/schema.hpp"

#include <gtest/gtest.h>

namespace gantry::core {
namespace {

base::json::value parse(std::string_view text) { return base::parse_json(text, "test").value(); }

std::vector<std::string> texts(const std::vector<schema_fault>& faults) {
    std::vector<std::string> out;
    for (const auto& fault : faults) out.push_back(fault.path + ": " + fault.what);
    return out;
}

std::vector<std::string> faults_of(std::string_view schema, std::string_view value) {
    auto document = parse(value);
    return texts(apply_schema(parse(schema).as_object(), document));
}

using lines = std::vector<std::string>;

TEST(schema, names_path_value_and_what_is_allowed) {
    constexpr auto schema = R"({"type": "object", "required": ["subnet"], "additionalProperties": false, "properties": {
        "subnet": {"type": "string", "pattern": "^[0-9./]+$"}, "mtu": {"type": "integer", "minimum": 68, "maximum": 65535},
        "mode": {"enum": ["bridge", "route"]},
        "registries": {"type": "array", "items": {"type": "object", "required": ["match"]}}}})";
    EXPECT_EQ(faults_of(schema, R"({"subnet": "10.0.0.0/8", "mtu": 1500, "mode": "route", "registries": [{"match": "x"}]})"),
              lines{});
    EXPECT_EQ(faults_of(schema, "{}"), lines{"subnet: missing, this key is required"});
    EXPECT_EQ(faults_of(schema, R"({"subnet": "ten"})"), lines{R"(subnet: value "ten", allowed pattern ^[0-9./]+$)"});
    EXPECT_EQ(faults_of(schema, R"({"subnet": "1", "mtu": 9})"), lines{"mtu: value 9, allowed 68 to 65535"});
    EXPECT_EQ(faults_of(schema, R"({"subnet": "1", "mtu": "9"})"),
              lines{R"(mtu: value "9" is of type string, allowed integer)"});
    EXPECT_EQ(faults_of(schema, R"({"subnet": "1", "mode": "brigde"})"),
              lines{R"(mode: value "brigde", allowed "bridge", "route" (did you mean "bridge"?))"});
    EXPECT_EQ(faults_of(schema, R"({"subnet": "1", "registries": [{"match": "a"}, {}]})"),
              lines{"registries[1].match: missing, this key is required"});
    EXPECT_EQ(faults_of(schema, R"({"subnet": "1", "mut": 1})"),
              lines{R"(mut: unknown key, allowed subnet, mtu, mode, registries (did you mean "mtu"?))"});
    EXPECT_EQ(faults_of(schema, "[]"), lines{": value [] is of type array, allowed object"});
}

TEST(schema, reports_all_faults_at_once) {
    constexpr auto schema = R"({"properties": {"a": {"type": "boolean"}, "b": {"maximum": 3}, "c": {"minimum": 0}}})";
    EXPECT_EQ(faults_of(schema, R"({"a": 1, "b": 4.5, "c": -1})"),
              (lines{"a: value 1 is of type integer, allowed boolean", "b: value 4.5E0, allowed 3 or less",
                     "c: value -1, allowed 0 or more"}));
}

TEST(schema, fills_defaults_in_depth) {
    const auto schema = parse(R"({"properties": {"mtu": {"default": 1500}, "ipam": {"type": "object", "default": {},
        "properties": {"mode": {"default": "local"}}}}})");
    auto value = parse(R"({"mtu": 9000})");
    EXPECT_TRUE(apply_schema(schema.as_object(), value).empty());
    EXPECT_EQ(value, parse(R"({"mtu": 9000, "ipam": {"mode": "local"}})"));
}

TEST(schema, a_default_must_fit_its_own_schema) {
    EXPECT_EQ(faults_of(R"({"properties": {"a": {"type": "string", "default": 5}}})", "{}"),
              lines{"a: value 5 is of type integer, allowed string"});
}

TEST(schema, whole_floats_are_integers) {
    EXPECT_EQ(faults_of(R"({"type": "integer"})", "2.0"), lines{});
    EXPECT_EQ(faults_of(R"({"type": "integer"})", "18446744073709551615"), lines{});
    EXPECT_EQ(faults_of(R"({"type": ["string", "null"]})", "null"), lines{});
}

TEST(schema, additional_properties_may_be_a_schema) {
    EXPECT_EQ(faults_of(R"({"additionalProperties": {"type": "string"}})", R"({"a": "b", "c": 1})"),
              lines{"c: value 1 is of type integer, allowed string"});
}

TEST(schema, a_pattern_is_not_run_over_huge_texts) {
    const auto huge = "\"" + std::string(1'000'000, 'a') + "\"";
    const auto found = faults_of(R"({"pattern": "^(a|b)*$"})", huge);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_LT(found[0].size(), 200u);
}

TEST(schema, refuses_schemas_outside_the_subset) {
    const auto faults = [](std::string_view schema) { return texts(check_schema(parse(schema).as_object())); };
    EXPECT_EQ(faults(R"({"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "default": 1})"), lines{});
    EXPECT_EQ(faults(R"({"oneOf": []})"),
              lines{"oneOf: unknown schema keyword, allowed type, properties, required, additionalProperties, enum, items, "
                    "minimum, maximum, pattern, default, title, description"});
    EXPECT_EQ(faults(R"({"properties": {"a": {"type": "text"}}})"),
              lines{R"(properties.a.type: value "text", allowed object, array, string, integer, number, boolean, null or an )"
                    "array of them"});
    EXPECT_EQ(faults(R"({"pattern": "["})").size(), 1u);
    EXPECT_EQ(faults(R"({"items": []})"), lines{"items: value [], allowed a schema"});
    EXPECT_EQ(faults(R"({"enum": []})"), lines{"enum: value [], allowed a non-empty array"});
    EXPECT_EQ(faults(R"({"minimum": "0"})"), lines{R"(minimum: value "0", allowed a number)"});
    EXPECT_EQ(faults(R"({"required": "a"})"), lines{R"(required: value "a", allowed an array of strings)"});
}

} // namespace
} // namespace gantry::core
