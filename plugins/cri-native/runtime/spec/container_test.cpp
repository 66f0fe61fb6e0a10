#include "plugins/cri-native/runtime/spec/container.hpp"

#include <linux/capability.h>

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/cri-native/launch/defaults.hpp"
#include "plugins/cri-native/runtime/spec/capabilities.hpp"

namespace gantry::cri_native {
namespace {

namespace cri = runtime::v1;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t every = (std::uint64_t{1} << (CAP_LAST_CAP + 1)) - 1;

images::image image() {
    images::image made;
    made.id = "sha256:abc";
    made.config.entrypoint = {"/app"};
    made.config.working_dir = "/srv";
    made.layers = {"/store/layers/1", "/store/layers/2", "/store/layers/3"};
    return made;
}

container_facts facts() {
    container_facts made;
    made.id = "c1";
    made.etc_dir = "/run/p/etc";
    made.available_capabilities = every;
    made.upper = "/w/upper";
    made.work = "/w/work";
    return made;
}

cri::LinuxContainerSecurityContext& security(cri::ContainerConfig& of) {
    return *of.mutable_linux()->mutable_security_context();
}

TEST(plan_of, stacks_layers_top_first_with_short_names) {
    const auto plan = plan_of({}, image(), facts());
    ASSERT_TRUE(plan);
    ASSERT_TRUE(plan->rootfs.overlay);
    EXPECT_EQ(plan->rootfs.overlay->base, "/store/layers");
    EXPECT_THAT(plan->rootfs.overlay->lower, ElementsAre("3", "2", "1"));
    EXPECT_EQ(plan->rootfs.overlay->upper, "/w/upper");
    EXPECT_THAT(plan->rootfs.overlay->options, Contains("volatile"));
}

TEST(plan_of, runs_the_images_program_in_the_images_directory) {
    const auto plan = plan_of({}, image(), facts());
    EXPECT_THAT(plan->process.argv, ElementsAre("/app"));
    EXPECT_EQ(plan->process.cwd, "/srv");
    EXPECT_EQ(plan->process.capabilities, default_capabilities());
    EXPECT_FALSE(plan->process.no_new_privs);
    cri::ContainerConfig config;
    config.set_working_dir("relative/../dir");
    EXPECT_EQ(plan_of(config, image(), facts())->process.cwd, "/dir");
}

TEST(plan_of, hides_paths_unless_privileged) {
    cri::ContainerConfig config;
    security(config).add_masked_paths("/proc/kcore");
    security(config).add_readonly_paths("/proc/sys");
    auto plan = plan_of(config, image(), facts());
    EXPECT_THAT(plan->masked_paths, ElementsAre("/proc/kcore"));
    EXPECT_THAT(plan->readonly_paths, ElementsAre("/proc/sys"));
    security(config).set_privileged(true);
    plan = plan_of(config, image(), facts());
    EXPECT_TRUE(plan->masked_paths.empty() && plan->readonly_paths.empty());
    EXPECT_EQ(plan->process.capabilities, every);
}

TEST(plan_of, chooses_the_pid_namespace) {
    cri::ContainerConfig config;
    auto shared = facts();
    shared.shared_pid = true;
    EXPECT_EQ(plan_of(config, image(), shared)->pid, launch::pid_mode::pod);
    EXPECT_EQ(plan_of(config, image(), facts())->pid, launch::pid_mode::container);
    security(config).mutable_namespace_options()->set_pid(cri::NODE);
    EXPECT_EQ(plan_of(config, image(), facts())->pid, launch::pid_mode::host);
}

TEST(plan_of, keeps_oom_scores_within_what_the_node_may_set) {
    cri::ContainerConfig config;
    config.mutable_linux()->mutable_resources()->set_oom_score_adj(-997);
    EXPECT_EQ(plan_of(config, image(), facts())->process.oom_score_adj, -997);
    auto limited = facts();
    limited.lowest_oom_score = 0;
    EXPECT_EQ(plan_of(config, image(), limited)->process.oom_score_adj, 0);
    config.mutable_linux()->mutable_resources()->set_oom_score_adj(5000);
    EXPECT_EQ(plan_of(config, image(), facts())->process.oom_score_adj, 1000);
}

TEST(plan_of, replaces_default_devices_of_the_same_path) {
    auto with = facts();
    launch::device_plan fuse;
    fuse.path = "/dev/fuse";
    fuse.major = 10;
    fuse.minor = 229;
    launch::device_plan null = fuse;
    null.path = "/dev/null";
    with.devices = {{.node = fuse}, {.node = null}};
    const auto plan = plan_of({}, image(), with);
    EXPECT_EQ(plan->devices.size(), launch::default_devices().size() + 1);
    EXPECT_THAT(plan->devices, Contains(testing::AllOf(testing::Field(&launch::device_plan::path, "/dev/null"),
                                                       testing::Field(&launch::device_plan::major, 10u))));
}

TEST(plan_of, names_the_image_when_there_is_no_command) {
    auto bare = image();
    bare.config.entrypoint.clear();
    cri::ContainerConfig config;
    config.mutable_image()->set_user_specified_image("example:1");
    const auto plan = plan_of(config, bare, facts());
    ASSERT_FALSE(plan);
    EXPECT_THAT(plan.error().message, HasSubstr("example:1"));
}

TEST(plan_of, names_what_it_would_have_to_leave_out) {
    const auto message = [](auto change) {
        cri::ContainerConfig config;
        change(config);
        const auto plan = plan_of(config, image(), facts());
        return plan ? std::string("(accepted)") : plan.error().message;
    };
    EXPECT_THAT(message([](auto& c) { c.add_cdi_devices()->set_name("acme.com/gpu=0"); }), HasSubstr("acme.com/gpu=0"));
    EXPECT_THAT(message([](auto& c) {
                    c.add_mounts()->mutable_image()->set_image("data:1");
                    c.mutable_mounts(0)->set_container_path("/data");
                }),
                testing::StartsWith("ImageVolumeMountFailed"));
    EXPECT_THAT(message([](auto& c) { security(c).mutable_capabilities()->add_add_ambient_capabilities("NET_RAW"); }),
                HasSubstr("ambient"));
    EXPECT_THAT(message([](auto& c) { security(c).mutable_namespace_options()->set_pid(cri::TARGET); }),
                HasSubstr("TARGET"));
    EXPECT_THAT(
        message([](auto& c) { security(c).mutable_apparmor()->set_profile_type(cri::SecurityProfile::Localhost); }),
        HasSubstr("AppArmor"));
    EXPECT_EQ(message([](auto& c) { security(c).mutable_apparmor(); }), "(accepted)");
}

TEST(stop_signal_of, prefers_the_request_then_the_image) {
    cri::ContainerConfig config;
    images::image_config from;
    EXPECT_EQ(stop_signal_of(config, from), SIGTERM);
    from.stop_signal = "SIGQUIT";
    EXPECT_EQ(stop_signal_of(config, from), SIGQUIT);
    from.stop_signal = "nonsense";
    EXPECT_EQ(stop_signal_of(config, from), SIGTERM);
    config.set_stop_signal(cri::SIGNAL_SIGUSR1);
    EXPECT_EQ(stop_signal_of(config, from), SIGUSR1);
    config.set_stop_signal(cri::SIGNAL_SIGRTMINPLUS3);
    EXPECT_EQ(stop_signal_of(config, from), 37);
    config.set_stop_signal(cri::SIGNAL_SIGRTMAXMINUS2);
    EXPECT_EQ(stop_signal_of(config, from), 62);
}

TEST(stop_signal_of, knows_every_name_of_cri) {
    for (int value = cri::Signal_MIN + 1; value <= cri::Signal_MAX; ++value) {
        cri::ContainerConfig config;
        config.set_stop_signal(static_cast<cri::Signal>(value));
        images::image_config from;
        from.stop_signal = "64"; // what a name that is not understood falls back to
        const int number = stop_signal_of(config, from);
        if (value != cri::SIGNAL_SIGRTMAX) {
            EXPECT_NE(number, 64) << cri::Signal_Name(static_cast<cri::Signal>(value));
        }
    }
}

TEST(seccomp_of, reads_the_three_types) {
    using kind = seccomp_choice::kind;
    cri::ContainerConfig config;
    EXPECT_EQ(seccomp_of(config)->what, kind::unconfined);
    auto& profile = *security(config).mutable_seccomp();
    EXPECT_EQ(seccomp_of(config)->what, kind::runtime_default);
    profile.set_profile_type(cri::SecurityProfile::Localhost);
    EXPECT_FALSE(seccomp_of(config));
    profile.set_localhost_ref("/var/lib/profiles/a.json");
    EXPECT_EQ(seccomp_of(config)->path, "/var/lib/profiles/a.json");
    security(config).set_privileged(true);
    EXPECT_EQ(seccomp_of(config)->what, kind::unconfined);
}

TEST(device_rules, deny_all_but_the_usual_ones) {
    const auto rules = device_rules(false, {});
    EXPECT_FALSE(rules.front().allow);
    EXPECT_EQ(rules.front().type, 'a');
    for (const auto& rule : rules) {
        if (rule.allow && !rule.major) {
            EXPECT_EQ(rule.access, "m");
        }
    }
    EXPECT_EQ(device_rules(true, {}).size(), 1u);
}

TEST(missing_capabilities, lists_what_the_node_lacks) {
    cri::ContainerConfig config;
    security(config).mutable_capabilities()->add_add_capabilities("SYS_RESOURCE");
    EXPECT_THAT(missing_capabilities(config, every & ~(std::uint64_t{1} << CAP_SYS_RESOURCE)),
                ElementsAre("CAP_SYS_RESOURCE"));
    EXPECT_TRUE(missing_capabilities(config, every).empty());
}

} // namespace
} // namespace gantry::cri_native
