// The plugin through its ABI.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.hpp"
#include "base/json.hpp"
#include "gantry/abi/draft/pod_source.h"
#include "gantry/sdk/fake_host.h"

extern "C" const gantry_plugin_entry* gantry_plugin_main_source_file(void);

namespace gantry::source_file {

namespace {

using namespace std::chrono_literals;

std::string make_dir() {
    char name[] = "/tmp/gantry-source-XXXXXX";
    return ::mkdtemp(name);
}

class source_file_as_plugin : public ::testing::Test {
protected:
    source_file_as_plugin() : host_({.config = R"({"path": ")" + dir_ + R"(/"})", .node_name = "n1"}) {}
    ~source_file_as_plugin() override {
        plugin_.reset();
        EXPECT_THAT(host_.misbehaviour(), ::testing::IsEmpty());
        (void)base::remove_tree(dir_);
    }
    void start() {
        plugin_.emplace(host_, gantry_plugin_main_source_file());
        const auto started = plugin_->start();
        ASSERT_TRUE(started.ok()) << started.error.message;
        table_ = plugin_->capability<gantry_pod_source>(GANTRY_POD_SOURCE);
    }
    std::string next(gantry_op op) {
        fake::outcome item;
        if (!plugin_->next_item(op, item)) return "nothing";
        const auto value = base::parse_json(item.bytes, "item");
        const std::string type(value->at("type").as_string());
        return type == "SYNCED" ? type
                                : type + " " + std::string(value->at("pod").at("metadata").at("name").as_string());
    }
    void write(const std::string& name) const {
        std::ofstream(dir_ + "/" + name + ".yaml")
            << "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: c, image: i}]}\n";
    }

    const std::string dir_ = make_dir();
    fake::host host_;
    std::optional<fake::plugin> plugin_;
    const gantry_pod_source* table_ = nullptr;
};

} // namespace

TEST_F(source_file_as_plugin, watches_until_it_is_cancelled) {
    write("a");
    start();
    const auto op = plugin_->begin(table_->watch, {"{}"});
    EXPECT_EQ(next(op), "ADD a-n1");
    EXPECT_EQ(next(op), "SYNCED");
    write("b");
    EXPECT_EQ(next(op), "ADD b-n1");
    plugin_->cancel(op);
    EXPECT_EQ(plugin_->wait(op).error.code, GANTRY_CANCELLED);
}

TEST_F(source_file_as_plugin, begins_anew_with_every_watch) {
    write("a");
    start();
    for (int i = 0; i < 3; ++i) {
        const auto op = plugin_->begin(table_->watch, {"{}"});
        EXPECT_EQ(next(op), "ADD a-n1");
        EXPECT_EQ(next(op), "SYNCED");
        plugin_->cancel(op);
        EXPECT_EQ(plugin_->wait(op).error.code, GANTRY_CANCELLED);
    }
}

TEST_F(source_file_as_plugin, stops_with_a_watch_open) {
    start();
    const auto op = plugin_->begin(table_->watch, {"{}"});
    EXPECT_EQ(next(op), "SYNCED");
    plugin_->stop();
    EXPECT_EQ(plugin_->wait(op).error.code, GANTRY_CANCELLED);
}

TEST(source_file_config, needs_an_absolute_path) {
    for (const auto* config : {"{}", R"({"path": "manifests"})", R"({"path": 5})"}) {
        fake::host host({.config = config});
        fake::plugin plugin(host, gantry_plugin_main_source_file());
        const auto ready = plugin.init();
        EXPECT_EQ(ready.error.code, GANTRY_INVALID) << config;
        EXPECT_NE(ready.error.message.find("path"), std::string::npos);
    }
}

} // namespace gantry::source_file
