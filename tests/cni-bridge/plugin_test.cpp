// The built plugin, loaded and called as gantry calls it: JSON and a namespace in, JSON or a CNI error out.
#include <dlfcn.h>
#include <sys/stat.h>

#include "base/files.hpp"
#include "base/json.hpp"
#include "gantry/abi/draft/network.h"
#include "gantry/sdk/fake_host.h"
#include "tests/cni-bridge/world.hpp"

namespace gantry::cni_bridge::test {
namespace {

const gantry_plugin_entry* entry() {
    void* library = ::dlopen(CNI_BRIDGE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    return reinterpret_cast<gantry_plugin_main_fn>(::dlsym(library, "gantry_plugin_main"))();
}

class loaded : public world {
protected:
    void SetUp() override {
        world::SetUp();
        if (HasFatalFailure()) return;
        host_service_ = std::make_unique<fake::host>(fake::settings{.config = R"({"subnet": "10.77.0.0/24"})",
                                                                    .instance = "net",
                                                                    .node_instance = instance,
                                                                    .folder = state_dir + "/host"});
        plugin_ = std::make_unique<fake::plugin>(*host_service_, entry());
        const auto started = plugin_->start();
        ASSERT_TRUE(started.ok()) << started.error.message;
        table_ = plugin_->capability<gantry_network>(GANTRY_NETWORK);
        ASSERT_NE(table_, nullptr);
    }
    void TearDown() override {
        if (plugin_) {
            plugin_->stop();
            EXPECT_EQ(host_service_->misbehaviour(), std::vector<std::string>());
        }
        plugin_.reset();
        host_service_.reset();
        world::TearDown();
    }
    fake::outcome call(gantry_op_fn fn, const std::string& bytes, const netns* pod = nullptr) {
        fake::message with{bytes};
        if (pod) with.fds = {pod->fd()};
        return plugin_->call(fn, with);
    }
    static std::string json_of(const std::string& id, int host_port = 0) {
        return R"({"containerID": ")" + id +
               R"(", "ifname": "eth0", "args": {"K8S_POD_NAMESPACE": "shop", "K8S_POD_NAME": "web"},
            "runtimeConfig": {"portMappings": [{"hostPort": )" +
               std::to_string(host_port) + R"(, "containerPort": 80, "protocol": "tcp"}]}})";
    }

    std::unique_ptr<fake::host> host_service_;
    std::unique_ptr<fake::plugin> plugin_;
    const gantry_network* table_ = nullptr;
};

TEST_F(loaded, add_check_and_del_a_pod) {
    const netns pod;
    const auto added = call(table_->add, json_of("a", 8080), &pod);
    ASSERT_TRUE(added.ok()) << added.error.message;
    const auto answer = *base::parse_json(added.bytes, "result");
    EXPECT_EQ(answer.at("cniVersion").as_string(), "1.1.0");
    const std::string address(answer.at("ips").at(0).at("address").as_string());
    EXPECT_TRUE(address.starts_with("10.77.0.") && address.ends_with("/32")) << address;
    EXPECT_EQ(call(table_->add, json_of("a", 8080), &pod).bytes, added.bytes);
    EXPECT_TRUE(call(table_->check, json_of("a", 8080), &pod).ok());
    EXPECT_EQ(call(table_->status, "{}").bytes, "{}");
    EXPECT_TRUE(call(table_->del, json_of("a")).ok());
    EXPECT_TRUE(call(table_->del, json_of("a"), &pod).ok());
    const auto gone = call(table_->check, json_of("a"), &pod);
    EXPECT_EQ(gone.error.code, GANTRY_NOT_FOUND);
    EXPECT_EQ(gone.error.detail, R"({"cniCode":"3"})");
}

TEST_F(loaded, gc_frees_what_is_not_listed) {
    const netns a, b;
    ASSERT_TRUE(call(table_->add, json_of("a"), &a).ok());
    ASSERT_TRUE(call(table_->add, json_of("b"), &b).ok());
    ASSERT_TRUE(call(table_->gc, R"({"cni.dev/valid-attachments": [{"containerID": "b", "ifname": "eth0"}]})").ok());
    EXPECT_FALSE(call(table_->check, json_of("a"), &a).ok());
    EXPECT_TRUE(call(table_->check, json_of("b"), &b).ok());
    EXPECT_EQ(call(table_->gc, "{}").error.code, GANTRY_INVALID);
    EXPECT_TRUE(call(table_->check, json_of("b"), &b).ok());
}

TEST_F(loaded, errors_are_those_of_cni) {
    const netns a, b;
    ASSERT_TRUE(call(table_->add, json_of("a", 8080), &a).ok());
    const auto taken = call(table_->add, json_of("b", 8080), &b);
    EXPECT_EQ(taken.error.code, GANTRY_EXISTS);
    EXPECT_EQ(taken.error.detail, R"({"cniCode":"101"})");
    EXPECT_NE(taken.error.message.find("is taken by pod shop/web (container a)"), std::string::npos);
    const auto no_netns = call(table_->add, json_of("b"));
    EXPECT_EQ(no_netns.error.detail, R"({"cniCode":"4"})");
    EXPECT_EQ(call(table_->add, "no json", &b).error.detail, R"({"cniCode":"6"})");
    EXPECT_NE(
        call(table_->add, R"({"containerID": "../b", "ifname": "eth0"})", &b).error.detail.find("\"containerID\""),
        std::string::npos);
}

TEST_F(loaded, host_threads_stay_in_the_hosts_namespace) {
    const netns pod;
    ASSERT_TRUE(call(table_->add, json_of("a", 8080), &pod).ok());
    struct stat here {
    }, there{};
    ASSERT_EQ(::stat("/proc/thread-self/ns/net", &here), 0);
    const auto threads = *base::list_dir("/proc/self/task");
    EXPECT_GT(threads.size(), 2u);
    for (const auto& thread : threads) {
        if (::stat(("/proc/self/task/" + thread + "/ns/net").c_str(), &there) != 0) continue; // ended meanwhile
        EXPECT_EQ(there.st_ino, here.st_ino) << "thread " << thread;
    }
}

TEST_F(loaded, restart_remembers_its_pods) {
    const netns pod;
    const auto added = call(table_->add, json_of("a", 8080), &pod);
    ASSERT_TRUE(added.ok()) << added.error.message;
    plugin_->stop();
    plugin_ = std::make_unique<fake::plugin>(*host_service_, entry());
    ASSERT_TRUE(plugin_->start().ok());
    EXPECT_TRUE(call(table_->check, json_of("a", 8080), &pod).ok());
    EXPECT_EQ(call(table_->add, json_of("a", 8080), &pod).bytes, added.bytes);
}

TEST_F(loaded, wrong_config_is_refused_at_start_by_key) {
    fake::host other(fake::settings{.config = R"({"subnet": "10.77.0.1/24"})", .instance = "net"});
    fake::plugin refused(other, entry());
    const auto started = refused.start();
    EXPECT_EQ(started.error.code, GANTRY_INVALID);
    EXPECT_NE(started.error.message.find("subnet: 10.77.0.1/24 has bits beyond its prefix; write 10.77.0.0/24"),
              std::string::npos);
}

} // namespace
} // namespace gantry::cni_bridge::test
