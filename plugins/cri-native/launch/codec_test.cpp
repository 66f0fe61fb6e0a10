#include "plugins/cri-native/launch/codec.hpp"

#include <gtest/gtest.h>

#include "plugins/cri-native/launch/defaults.hpp"
#include "plugins/cri-native/launch/failure.hpp"
#include "plugins/cri-native/launch/wire.hpp"

namespace gantry::cri_native::launch {
namespace {

container_plan minimal() {
    container_plan plan;
    plan.id = "c";
    plan.process.argv = {"true"};
    plan.rootfs.bind = "/root";
    return plan;
}

std::vector<std::string> texts(const std::string& plan, wire::tag tag, int skip_numbers = 0) {
    std::vector<std::string> all;
    for (wire::records r(plan.data() + sizeof(wire::plan_header), plan.size() - sizeof(wire::plan_header)); r.next();) {
        if (!r.is(tag)) continue;
        wire::fields f = r.body();
        for (int i = 0; i < skip_numbers; ++i) f.u32();
        const wire::text t = f.text();
        all.emplace_back(t.data, t.size);
    }
    return all;
}

TEST(launch_codec, ids_are_limited_to_names_that_are_safe_in_paths) {
    for (const char* good : {"a", "A-b_c+d.e", "0", "-x"}) EXPECT_TRUE(valid_id(good)) << good;
    for (const std::string bad : {"", ".", ".hidden", "a/b", "a b", "..", "a\n", "\xff"})
        EXPECT_FALSE(valid_id(bad)) << bad;
    EXPECT_FALSE(valid_id(std::string(129, 'a')));
}

TEST(launch_codec, mounts_are_sorted_parents_first_and_otherwise_keep_their_order) {
    auto plan = minimal();
    for (const char* target : {"/a/b/c", "/z", "/a/b", "/a", "/m//n/", "/b"})
        plan.mounts.push_back({.kind = mount_kind::tmpfs, .target = target});
    const auto bytes = encode(plan);
    ASSERT_TRUE(bytes);
    std::vector<std::string> targets;
    for (wire::records r(bytes->data() + sizeof(wire::plan_header), bytes->size() - sizeof(wire::plan_header));
         r.next();) {
        if (!r.is(wire::tag::mount)) continue;
        wire::fields f = r.body();
        f.u32();
        f.text();
        targets.emplace_back(f.text().data);
    }
    EXPECT_EQ(targets, (std::vector<std::string>{"/z", "/a", "/b", "/a/b", "/m//n/", "/a/b/c"}));
}

TEST(launch_codec, environment_is_kept_raw_and_gets_a_path_when_it_has_none) {
    auto plan = minimal();
    plan.process.env = {"RAW=\xff\xfe", "EMPTY="};
    auto bytes = encode(plan);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(texts(*bytes, wire::tag::environment),
              (std::vector<std::string>{"RAW=\xff\xfe", "EMPTY=", "PATH=" + std::string(default_path)}));
    plan.process.env = {"PATH="};
    bytes = encode(plan);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(texts(*bytes, wire::tag::environment), (std::vector<std::string>{"PATH="}));
}

TEST(launch_codec, plans_that_cannot_be_meant_are_refused_with_a_sentence) {
    const auto refusal = [](auto change) {
        auto plan = minimal();
        change(plan);
        const auto bytes = encode(plan);
        EXPECT_FALSE(bytes);
        return bytes ? "" : bytes.error().message;
    };
    EXPECT_EQ(refusal([](auto& p) { p.process.argv.clear(); }), "no command specified");
    EXPECT_EQ(refusal([](auto& p) { p.process.cwd = "relative"; }),
              "the working directory is not an absolute path: \"relative\"");
    EXPECT_EQ(refusal([](auto& p) { p.process.env = {std::string("A=\0b", 4)}; }), "the environment holds a NUL byte");
    EXPECT_EQ(refusal([](auto& p) { p.process.seccomp.resize(9); }),
              "the seccomp filter is not a whole number of instructions");
    EXPECT_EQ(refusal([](auto& p) { p.process.seccomp.resize(8 * 4097); }),
              "the seccomp filter has 4097 instructions, the kernel takes 4096");
    EXPECT_EQ(refusal([](auto& p) { p.devices.push_back({.path = "/dev/x", .type = 'p'}); }),
              "device /dev/x is neither 'c' nor 'b'");
    EXPECT_EQ(refusal([](auto& p) { p.rootfs.overlay = overlay_plan{}; }), "the overlay root has no lower layer");
    EXPECT_EQ(refusal([](auto& p) { p.mounts.push_back({.source = "x", .target = "/v"}); }),
              "the source of mount /v is not an absolute path: \"x\"");
}

TEST(launch_codec, a_single_read_only_layer_is_bound_instead_of_overlaid) {
    auto plan = minimal();
    plan.rootfs.overlay = overlay_plan{.base = "/layers", .lower = {"l1"}, .upper = {}, .work = {}};
    const auto bytes = encode(plan);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(texts(*bytes, wire::tag::root, 1), (std::vector<std::string>{"/layers/l1"}));
}

TEST(launch_codec, sysctl_names_become_paths_that_cannot_climb) {
    sandbox_plan plan{
        .id = "p", .run_dir = "/run/p", .sysctls = {{"net.ipv4.ip_forward", "1"}, {"net/ipv4/conf/eth0.1/mtu", "9"}}};
    const auto bytes = encode(plan);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(texts(*bytes, wire::tag::sysctl),
              (std::vector<std::string>{"net/ipv4/ip_forward", "net/ipv4/conf/eth0.1/mtu"}));
    for (const char* bad : {"/etc/passwd", "net/../../etc", "..net"}) {
        plan.sysctls = {{bad, ""}};
        EXPECT_FALSE(encode(plan)) << bad;
    }
}

TEST(launch_wire, every_cut_of_a_plan_is_bad_or_shorter_but_never_read_past) {
    auto plan = minimal();
    plan.process.env = {"A=1"};
    plan.mounts = default_mounts(false);
    plan.devices = default_devices();
    const auto whole = encode(plan);
    ASSERT_TRUE(whole);
    for (std::size_t size = sizeof(wire::plan_header); size < whole->size(); ++size) {
        const std::vector<char> cut(whole->begin(),
                                    whole->begin() + static_cast<std::ptrdiff_t>(size)); // exact: ASan sees more
        wire::records r(cut.data() + sizeof(wire::plan_header), size - sizeof(wire::plan_header));
        while (r.next()) {
            wire::fields f = r.body();
            for (int i = 0; i < 12; ++i) i % 2 ? static_cast<void>(f.text()) : static_cast<void>(f.u32());
        }
    }
}

TEST(launch_wire, fields_past_the_end_of_an_older_record_are_empty) {
    std::string bytes;
    wire::writer<std::string> w(bytes);
    w.begin(wire::tag::masked).text("/a", 2);
    w.end();
    wire::records r(bytes.data(), bytes.size());
    ASSERT_TRUE(r.next());
    wire::fields f = r.body();
    EXPECT_STREQ(f.text().data, "/a");
    EXPECT_EQ(f.u32(), 0u);
    EXPECT_TRUE(f.text().empty());
    EXPECT_FALSE(f.bad());
}

TEST(launch_failure, says_what_failed_on_which_object) {
    const auto message = [](wire::step s, int err, std::string object, std::string detail = "") {
        return to_error({s, err, std::move(object), std::move(detail)}).message;
    };
    EXPECT_EQ(message(wire::step::exec_lookup, ENOENT, "foo"), "exec: \"foo\": executable file not found in $PATH");
    EXPECT_EQ(message(wire::step::exec_lookup, ENOENT, "/foo"), "exec: \"/foo\": No such file or directory");
    EXPECT_EQ(message(wire::step::cwd, EACCES, "/w", "1000"), "working directory \"/w\" is not accessible to uid 1000");
    EXPECT_EQ(message(wire::step::mount, EINVAL, "/v", "bad option"), "mount on /v: Invalid argument (bad option)");
    EXPECT_EQ(message(static_cast<wire::step>(999), EIO, ""), "step unknown to this version: Input/output error");
    EXPECT_EQ(to_error({wire::step::died, ENOMEM, "c", ""}).code, code::resource);
}

} // namespace
} // namespace gantry::cri_native::launch
