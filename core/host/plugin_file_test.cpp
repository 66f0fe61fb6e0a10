#include "core/host/plugin_file.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "core/config/parse.hpp"
#include "core/host/config_check.hpp"
#include "core/host/elf_fixture.hpp"

namespace gantry::core {
namespace {

using lines = std::vector<std::string>;

struct plugin_file_test : testing::Test {
    void SetUp() override {
        char pattern[] = "/tmp/gantry-files-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern), nullptr);
        dir_ = pattern;
        put("net.so", make_elf({good_note("net")}));
    }
    void TearDown() override { EXPECT_TRUE(base::remove_tree(dir_)); }
    void put(const std::string& name, const std::string& bytes, mode_t mode = 0644) {
        ASSERT_TRUE(base::write_file_atomic(dir_ + "/" + name, bytes, mode));
        ::chmod((dir_ + "/" + name).c_str(), mode);
    }
    std::string failure(const std::string& name) {
        const auto opened = open_plugin_file(dir_ + "/" + name);
        return opened ? "no failure" : opened.error().message;
    }
    lines faults(const std::string& plugins, const std::string& more = "") {
        const auto text = "apiVersion: gantry.dev/v1\nkind: NodeConfig\nplugins:\n" + plugins + more;
        const auto checked = check_config(parse_node_config(text, "n.yaml", "host"), {.dirs = {dir_}, .builtin = {}});
        if (checked) return {};
        lines out;
        std::string rest = checked.error().message;
        for (std::size_t cut; (cut = rest.find('\n')) != std::string::npos; rest.erase(0, cut + 1)) out.push_back(rest.substr(0, cut));
        out.push_back(rest);
        return out;
    }
    std::string dir_;
};

TEST_F(plugin_file_test, opens_what_only_root_can_have_written) {
    const auto file = open_plugin_file(dir_ + "/net.so");
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->sha256.size(), 64u);
    ASSERT_EQ(file->plugins.size(), 1u);
    EXPECT_EQ(file->plugins[0].id, "com.acme.net");
}

TEST_F(plugin_file_test, refuses_files_that_others_can_write) {
    const auto path = dir_ + "/net.so";
    ::chmod(path.c_str(), 0664);
    EXPECT_EQ(failure("net.so"), "plugin " + path + " is writable by group or others: run chmod go-w on it");
    ::chmod(path.c_str(), 0644);
    ::chmod(dir_.c_str(), 0777);
    EXPECT_EQ(failure("net.so"), "directory " + dir_ + " of plugin " + path + " is writable by group or others: run chmod go-w on it");
    ::chmod(dir_.c_str(), 01777); // sticky helps above, not in the plugin's own directory
    EXPECT_NE(failure("net.so"), "no failure");
    ::chmod(dir_.c_str(), 0700);
    EXPECT_EQ(failure("net.so"), "no failure");
    if (::geteuid() != 0) return;
    ASSERT_EQ(::chown(path.c_str(), 1000, 0), 0);
    EXPECT_EQ(failure("net.so"), "plugin " + path + " belongs to uid 1000, allowed root: run chown root on it");
}

TEST_F(plugin_file_test, judges_where_a_symlink_leads) {
    ASSERT_TRUE(base::make_dirs(dir_ + "/open"));
    put("open/net.so", make_elf({good_note()}));
    ::chmod((dir_ + "/open").c_str(), 0777);
    ASSERT_EQ(::symlink((dir_ + "/open/net.so").c_str(), (dir_ + "/link.so").c_str()), 0);
    EXPECT_NE(failure("link.so").find(dir_ + "/open of plugin"), std::string::npos);
    ASSERT_EQ(::symlink("/dev/null", (dir_ + "/null.so").c_str()), 0);
    EXPECT_NE(failure("null.so"), "no failure");
}

TEST_F(plugin_file_test, installs_by_content_and_drops_old_copies) {
    const auto file = open_plugin_file(dir_ + "/net.so");
    ASSERT_TRUE(file);
    ASSERT_TRUE(base::make_dirs(dir_ + "/lib"));
    put("lib/com.acme.net-0000.so", "old");
    const auto path = install_verified(*file, "com.acme.net", dir_ + "/lib");
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_EQ(*path, dir_ + "/lib/com.acme.net-" + file->sha256 + ".so");
    EXPECT_EQ(base::read_file(*path).value(), file->bytes.view());
    struct stat st {};
    ASSERT_EQ(::stat(path->c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0555u);
    remove_other_copies(dir_ + "/lib", {*path});
    EXPECT_EQ(base::list_dir(dir_ + "/lib").value().size(), 1u);
}

TEST_F(plugin_file_test, config_check_names_line_and_key_of_every_plugin_fault) {
    put("gc.so", make_elf({{.json = R"({"id": "com.acme.gc", "name": "gc", "version": "1", "capabilities": [], "config": {"type": "object",
        "additionalProperties": false, "properties": {"high": {"type": "integer", "maximum": 100, "default": 85}}}})"}}));
    put("future.so", make_elf({{.json = R"({"id": "f", "name": "future", "version": "9"})", .abi_major = 2}}));
    EXPECT_EQ(faults("- {name: a, use: nte}\n- {name: b, use: gc, config: {hihg: 1, high: 101}}\n- {name: c, use: net, sha256: '" +
                     std::string(64, '0') + "'}\n- {name: d, use: future}\n- {name: e, use: other, path: " + dir_ + "/net.so}\n"),
              (lines{
                  "n.yaml:4: plugins[0].use: value \"nte\" is no known plugin, allowed future, gc, net (did you mean \"net\"?): looked in " +
                      dir_ + ", or give its file by `path:`",
                  "n.yaml:5: plugins[1].config.hihg: unknown key, allowed high (did you mean \"high\"?)",
                  "n.yaml:5: plugins[1].config.high: value 101, allowed 100 or less",
                  "n.yaml:6: plugins[2].sha256: value \"" + std::string(64, '0') + "\", " + dir_ + "/net.so has \"" +
                      open_plugin_file(dir_ + "/net.so")->sha256 + "\": install the file that was pinned, or pin the new one",
                  "n.yaml:7: plugins[3].use: " + dir_ + "/future.so: plugin \"f\" 9 is built for plugin ABI 2.0, this gantry has 1.0: "
                      "install a build of the plugin for ABI 1",
                  "n.yaml:8: plugins[4].use: value \"other\" is not in " + dir_ + "/net.so, allowed net",
              }));
}

TEST_F(plugin_file_test, config_check_fills_in_defaults) {
    put("gc.so", make_elf({{.json = R"({"id": "com.acme.gc", "name": "gc", "version": "1", "capabilities": [], "config": {"properties": {"high": {"default": 85}}}})"}}));
    const auto checked = check_config(parse_node_config("apiVersion: gantry.dev/v1\nkind: NodeConfig\nplugins: [{name: g, use: com.acme.gc, path: " +
                                                            dir_ + "/gc.so}]\n",
                                                        "n.yaml", "host"),
                                      {});
    ASSERT_TRUE(checked) << checked.error().message;
    EXPECT_EQ(base::to_text(checked->config.plugins[0].config), R"({"high":85})");
}

TEST_F(plugin_file_test, one_id_comes_from_one_file) {
    put("copy.so", make_elf({good_note("net")}) + "x");
    EXPECT_EQ(faults("- {name: a, use: net, path: " + dir_ + "/net.so}\n- {name: b, use: net, path: " + dir_ + "/copy.so}\n",
                     "bind: {network: a}\n"),
              lines{"n.yaml:5: plugins[1]: plugin \"com.acme.net\" comes from two files, " + dir_ + "/net.so and " + dir_ +
                    "/copy.so: use one of them"});
}

TEST_F(plugin_file_test, inspect_shows_what_cannot_be_loaded_too) {
    put("future.so", make_elf({{.json = R"({"id": "f", "name": "future", "version": "9"})", .abi_major = 2}}));
    const auto shown = inspect_plugin(dir_ + "/future.so");
    ASSERT_TRUE(shown) << shown.error().message;
    const auto& one = shown->as_array().at(0).as_object();
    EXPECT_EQ(one.at("id").as_string(), "f");
    EXPECT_EQ(one.at("loadable").as_bool(), false);
    EXPECT_NE(std::string(one.at("reason").as_string()).find("built for plugin ABI 2.0"), std::string::npos);
}

} // namespace
} // namespace gantry::core
