#include "plugins/cni-bridge/lease_store.hpp"

#include <netinet/in.h>
#include <stdlib.h>

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace gantry::cni_bridge {
namespace {

class leases_on_disk : public testing::Test {
protected:
    void SetUp() override {
        char path[] = "/tmp/gantry-lease-test-XXXXXX";
        ASSERT_NE(::mkdtemp(path), nullptr);
        root_ = path;
    }
    void TearDown() override { EXPECT_TRUE(base::remove_tree(root_)); }
    std::string file(const std::string& name) const { return root_ + "/leases/" + name; }
    lease_store store() const { return lease_store(root_ + "/leases"); }

    std::string root_;
    const lease full_{
        .container_id = "a",
        .ifname = "eth0",
        .pod = "default/web",
        .addresses = {*netlink::ip_address::parse("10.88.0.7"), *netlink::ip_address::parse("fd00::7")},
        .ports = {{IPPROTO_TCP, {}, 8080, 80}, {IPPROTO_UDP, *netlink::ip_address::parse("::1"), 53, 5353}},
        .sandbox = "net:[4026531840]"};
};

TEST_F(leases_on_disk, come_back_as_they_were) {
    ASSERT_TRUE(store().load());
    ASSERT_TRUE(store().save(full_));
    const auto found = store().load();
    ASSERT_TRUE(found);
    ASSERT_EQ(found->leases.size(), 1u);
    const auto& l = found->leases[0];
    EXPECT_EQ(l.key(), full_.key());
    EXPECT_EQ(l.pod, full_.pod);
    EXPECT_EQ(l.addresses, full_.addresses);
    EXPECT_EQ(l.ports, full_.ports);
    EXPECT_EQ(l.sandbox, full_.sandbox);
    ASSERT_TRUE(store().remove(full_));
    ASSERT_TRUE(store().remove(full_));
    EXPECT_TRUE(store().load()->leases.empty());
}

TEST_F(leases_on_disk, broken_files_are_dropped_and_told_of) {
    ASSERT_TRUE(store().load());
    ASSERT_TRUE(store().save(full_));
    const auto text = *base::read_file(file("a,eth0"));
    for (
        const auto& [name, bytes] :
        {std::pair<std::string, std::string>{"empty,eth0", ""},
         {"half,eth0", text.substr(0, text.size() / 2)},
         {"a,eth0.tmp", text},
         {"types,eth0", R"({"containerID": 5})"},
         {"address,eth0",
          R"({"containerID": "address", "ifname": "eth0", "pod": "", "addresses": ["x"], "ports": [], "sandbox": ""})"}})
        ASSERT_TRUE(base::write_file_atomic(file(name), bytes));
    const auto found = store().load();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->leases.size(), 1u);
    EXPECT_EQ(found->dropped.size(), 5u);
    EXPECT_EQ(base::list_dir(root_ + "/leases")->size(), 1u);
}

} // namespace
} // namespace gantry::cni_bridge
