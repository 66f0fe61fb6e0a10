// The libraries of tests/plugins/bad: each breaks one rule, its README.md says what the host must do about it. Those that end
// the process are in crash_test.cpp.
#include <fstream>
#include <thread>

#include "gantry/abi/draft/network.h"
#include "tests/host/host_fixture.hpp"

namespace gantry::core {
namespace {

using namespace std::chrono_literals;

constexpr op_ref add_op = GANTRY_OP(GANTRY_NETWORK, gantry_network, add);
constexpr op_ref check_op = GANTRY_OP(GANTRY_NETWORK, gantry_network, check);

class bad_plugin : public host_fixture {
protected:
    std::string file(const std::string& name) { return std::string(GANTRY_BAD_PLUGINS) + "/bad-" + name + ".so"; }

    plugin_settings& use(const std::string& name) {
        auto& settings = add(name);
        settings.use = "bad-" + name;
        settings.path = file(name);
        options_.config.bind.capabilities.clear();
        options_.config.bind.instances["network"] = {"sound"};
        return settings;
    }

    /// The plugin beside a sound one.
    void start_with(const std::string& name) {
        use(name);
        use("sound");
        start();
        EXPECT_EQ(outcome("sound", add_op), "{}");
    }

    std::string outcome(const std::string& instance, op_ref op, std::chrono::nanoseconds timeout = 10s) {
        auto reply = wait(host_->client_of(instance, GANTRY_NETWORK)->call(op, {.bytes = "{}"}, {.timeout = timeout}));
        return reply ? reply->bytes : std::string(to_string(reply.error().code)) + ": " + reply.error().message;
    }

    void expect_fault(const std::string& name, const std::string& kind, std::uint64_t count = 1) {
        EXPECT_TRUE(eventually([&] { return info(name).faults[kind] == count; })) << kind << " " << info(name).faults[kind];
    }

    /// It is refused by the configuration check, with this in the message, and was never mapped.
    void expect_refused(const std::string& name, const std::vector<std::string>& says) {
        use(name);
        const auto created = create();
        ASSERT_FALSE(created) << name;
        for (const auto& text : says) EXPECT_NE(created.error().message.find(text), std::string::npos) << text << " is not in " << created.error().message;
        EXPECT_NE(created.error().message.find(file(name)), std::string::npos) << created.error().message;
        EXPECT_FALSE(is_mapped("dev.gantry.bad." + name));
    }

    /// It does not start, with this as the reason; the sound one does.
    void expect_failed(const std::string& name, const std::string& reason) {
        start_with(name);
        EXPECT_EQ(info(name).state, plugin_state::failed);
        EXPECT_EQ(info(name).reason, reason);
        EXPECT_EQ(outcome(name, add_op), std::string("unavailable: ") + reason);
    }

    static bool is_mapped(const std::string& id) {
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            if (line.find(id) != std::string::npos) return true;
        return false;
    }
};

TEST_F(bad_plugin, sound_is_not_bad) {
    use("sound");
    start();
    EXPECT_EQ(outcome("sound", add_op), "{}");
    EXPECT_EQ(outcome("sound", check_op), "{}");
    EXPECT_TRUE(info("sound").faults.empty());
}

TEST_F(bad_plugin, abi_major) {
    expect_refused("abi-major", {"\"dev.gantry.bad.abi-major\" 1.0.0 is built for plugin ABI 99.", "this gantry has 1.0: install a build"});
}
TEST_F(bad_plugin, needs_minor) { expect_refused("needs-minor", {"needs plugin ABI 1.999 or later, this gantry has 1.0: upgrade gantry"}); }
TEST_F(bad_plugin, no_note) { expect_refused("no-note", {"is not a gantry plugin: it has no note \".note.gantry.plugin\""}); }
TEST_F(bad_plugin, garbled_note) { expect_refused("garbled-note", {"descriptor: not JSON at byte "}); }
TEST_F(bad_plugin, incomplete_note) {
    expect_refused("incomplete-note", {"version: missing, allowed a non-empty string", "capabilities: missing, allowed an array of strings"});
}
TEST_F(bad_plugin, note_json_size) { expect_refused("note-json-size", {"its descriptor note is shorter than the JSON it announces"}); }
TEST_F(bad_plugin, note_desc_size) { expect_refused("note-desc-size", {"a note reaches beyond its segment"}); }
TEST_F(bad_plugin, duplicate_id) {
    use("sound");
    expect_refused("duplicate-id", {"plugin \"dev.gantry.bad.sound\" comes from two files", file("sound")});
}

TEST_F(bad_plugin, no_main) {
    expect_failed("no-main", file("no-main") + ": it does not export gantry_plugin_main (is GANTRY_PLUGIN missing, or its visibility "
                                               "hidden?); the plugin must be rebuilt");
}
TEST_F(bad_plugin, null_entry) {
    expect_failed("null-entry", file("null-entry") + ": gantry_plugin_main returned nothing; the plugin must be rebuilt");
}
TEST_F(bad_plugin, small_entry) {
    start_with("small-entry");
    EXPECT_EQ(info("small-entry").state, plugin_state::failed);
    EXPECT_NE(info("small-entry").reason.find("its entry is shorter than ABI 1.0"), std::string::npos) << info("small-entry").reason;
}
TEST_F(bad_plugin, create_null) { expect_failed("create-null", "create-null: create failed (internal) and gave no reason"); }
TEST_F(bad_plugin, small_plugin) {
    expect_failed("small-plugin", file("small-plugin") + ": its instance lacks init, capability or destroy; the plugin must be rebuilt");
}

TEST_F(bad_plugin, init_silent) {
    expect_failed("init-silent", "init-silent: init failed (unavailable) and gave no reason");
    expect_fault("init-silent", "error_without_message");
}
TEST_F(bad_plugin, init_throws) {
    start_with("init-throws");
    EXPECT_EQ(info("init-throws").state, plugin_state::failed);
    EXPECT_TRUE(info("init-throws").reason.starts_with("init-throws: init threw: ")) << info("init-throws").reason;
    expect_fault("init-throws", "exception");
}
TEST_F(bad_plugin, no_capability) {
    expect_failed("no-capability", file("no-capability") + ": its descriptor offers gantry.network/1-draft, its code has no table for it; "
                                                           "the plugin must be rebuilt");
}
TEST_F(bad_plugin, small_table) {
    start_with("small-table");
    EXPECT_EQ(outcome("small-table", add_op), "unsupported: small-table: add is not offered by this plugin (gantry.network/1-draft)");
    EXPECT_EQ(outcome("small-table", check_op), "unsupported: small-table: check is not offered by this plugin (gantry.network/1-draft)");
}

TEST_F(bad_plugin, op_throws) {
    start_with("op-throws");
    EXPECT_TRUE(outcome("op-throws", add_op).starts_with("internal: op-throws: add threw: "));
    expect_fault("op-throws", "exception");
    EXPECT_EQ(outcome("op-throws", check_op), "{}");
}
TEST_F(bad_plugin, completes_twice) {
    start_with("completes-twice");
    EXPECT_EQ(outcome("completes-twice", add_op), "{}");
    expect_fault("completes-twice", "double_complete");
}
TEST_F(bad_plugin, never_completes) {
    start_with("never-completes");
    EXPECT_EQ(outcome("never-completes", add_op, 300ms),
              "timeout: never-completes: add did not finish within 300 ms and ignored its cancellation for 100 ms: it was abandoned");
    expect_fault("never-completes", "abandoned_op");
    EXPECT_EQ(outcome("never-completes", check_op), "{}");
}
TEST_F(bad_plugin, completes_late) {
    start_with("completes-late");
    EXPECT_TRUE(outcome("completes-late", add_op, 300ms).starts_with("timeout: "));
    EXPECT_EQ(outcome("completes-late", check_op), "{}");
    expect_fault("completes-late", "late_complete");
}
TEST_F(bad_plugin, unknown_op) {
    start_with("unknown-op");
    EXPECT_EQ(outcome("unknown-op", add_op), "{}");
    EXPECT_TRUE(eventually([&] { return info("unknown-op").faults["unknown_op"] > 0; }));
}
TEST_F(bad_plugin, refuses_completed) {
    start_with("refuses-completed");
    EXPECT_EQ(outcome("refuses-completed", add_op), "{}");
    expect_fault("refuses-completed", "completed_refused_op");
}
TEST_F(bad_plugin, unknown_status) {
    start_with("unknown-status");
    EXPECT_EQ(outcome("unknown-status", add_op), "internal: unknown-status: add was not accepted (internal)");
}
TEST_F(bad_plugin, empty_error) {
    start_with("empty-error");
    EXPECT_EQ(outcome("empty-error", add_op), "unavailable: empty-error: add failed (unavailable) and gave no reason");
    expect_fault("empty-error", "error_without_message");
}
TEST_F(bad_plugin, setns) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    start_with("setns");
    std::this_thread::sleep_for(110ms); // past the time within which changes are sampled
    EXPECT_EQ(outcome("setns", add_op), "{}");
    EXPECT_EQ(outcome("setns", check_op), "{}");
    expect_fault("setns", "netns_changed");
}
TEST_F(bad_plugin, forks) {
    start_with("forks");
    EXPECT_EQ(outcome("forks", add_op), "{}");
    EXPECT_TRUE(eventually([&] { return info("forks").faults["fork"] > 0; }));
}

// These keep a thread for good, so they are last in line.
TEST_F(bad_plugin, init_hangs) {
    start_with("init-hangs");
    EXPECT_EQ(info("init-hangs").state, plugin_state::hung);
    EXPECT_EQ(info("init-hangs").reason, "init-hangs: init has not returned for 300 ms, its lane hangs");
    expect_fault("init-hangs", "lane_stall");
}
TEST_F(bad_plugin, blocks_lane) {
    start_with("blocks-lane");
    EXPECT_EQ(outcome("blocks-lane", add_op), "timeout: blocks-lane: add was given up: blocks-lane: add has not returned for 300 ms, its lane hangs");
    EXPECT_EQ(info("blocks-lane").state, plugin_state::hung);
    EXPECT_EQ(outcome("blocks-lane", check_op), "unavailable: blocks-lane: add has not returned for 300 ms, its lane hangs");
    EXPECT_EQ(outcome("sound", add_op), "{}");
}

} // namespace
} // namespace gantry::core
