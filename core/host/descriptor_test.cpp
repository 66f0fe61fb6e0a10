#include "core/host/descriptor.hpp"

#include <gtest/gtest.h>

#include "core/host/elf_fixture.hpp"

namespace gantry::core {
namespace {

result<descriptor> parse(const std::string& json, std::uint16_t major = GANTRY_ABI_MAJOR, std::uint16_t needs = 0) {
    return parse_descriptor({.abi_major = major, .abi_minor = 7, .needs_minor = needs, .json = json}, "/opt/x.so");
}

std::string failure(const result<descriptor>& parsed) { return parsed ? "no failure" : parsed.error().message; }

TEST(descriptor, holds_all_members) {
    const auto d = parse(R"({"id": "com.acme.net", "name": "acme-net", "version": "1.2.3", "vendor": "Acme", "capabilities":
        ["gantry.network/1-draft"], "requires": ["com.acme.ipam/2"], "services": ["gantry.exec/1"], "traits": ["owns-network"],
        "operations": {"com.acme.x/1": ["a", "b"]}, "maxConcurrency": 8, "config": {"type": "object"}, "later": {}})");
    ASSERT_TRUE(d) << d.error().message;
    EXPECT_EQ(d->id, "com.acme.net");
    EXPECT_EQ(d->capabilities, std::vector<std::string>{"gantry.network/1-draft"});
    EXPECT_EQ(d->peers, std::vector<std::string>{"com.acme.ipam/2"});
    EXPECT_EQ(d->max_concurrency, 8);
    EXPECT_TRUE(d->has_trait("owns-network"));
    EXPECT_EQ(d->operations.at("com.acme.x/1"), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(d->config.contains("type"));
}

TEST(descriptor, lists_every_fault) {
    EXPECT_EQ(failure(parse(R"({"id": "../x", "version": "1", "capabilities": ["net"], "maxConcurrency": 0, "config": {"oneOf": []}})")),
              "/opt/x.so: descriptor is wrong: id: value \"../x\", allowed at most 128 of a-z, A-Z, 0-9, '.', '-', '_'; name: missing, "
              "allowed a non-empty string; capabilities: value \"net\", allowed ids such as gantry.network/1; maxConcurrency: value 0, "
              "allowed 1 to 4096; config.oneOf: unknown schema keyword, allowed type, properties, required, additionalProperties, enum, "
              "items, minimum, maximum, pattern, default, title, description; the plugin must be rebuilt");
    EXPECT_EQ(failure(parse("[]")), "/opt/x.so: descriptor is not a JSON object");
}

TEST(descriptor, names_both_abi_versions) {
    constexpr auto json = R"({"id": "com.acme.net", "name": "n", "version": "2.0", "capabilities": []})";
    EXPECT_EQ(failure(parse(json, 2)), "/opt/x.so: plugin \"com.acme.net\" 2.0 is built for plugin ABI 2.7, this gantry has 1.0: install a "
                                       "build of the plugin for ABI 1");
    EXPECT_EQ(failure(parse(json, 1, 7)), "/opt/x.so: plugin \"com.acme.net\" 2.0 needs plugin ABI 1.7 or later, this gantry has 1.0: "
                                          "upgrade gantry or install an older version of the plugin");
    EXPECT_TRUE(parse(json, 1, 0)) << "built with later headers, needs none of them";
}

TEST(descriptor, names_the_service_that_is_missing) {
    const auto text = failure(parse(R"({"id": "a", "name": "n", "version": "1", "capabilities": [], "services": ["gantry.node/1"]})"));
    EXPECT_TRUE(text.starts_with("/opt/x.so: plugin \"a\" 1 needs the host service gantry.node/1, this gantry offers gantry.op/1, ")) << text;
}

TEST(descriptor, ids_of_one_library_differ) {
    const auto read = read_descriptors(make_elf({good_note(), good_note()}), "/opt/x.so");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message, "/opt/x.so: two descriptors of id \"com.acme.net\" or name \"net\"; the plugin must be rebuilt");
}

} // namespace
} // namespace gantry::core
