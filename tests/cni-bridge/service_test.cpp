// The network on its own thread: many callers at once, self-repair, cleaning up after DELs, and its end.
#include "plugins/cni-bridge/service.hpp"

#include <future>

#include "tests/cni-bridge/world.hpp"

namespace gantry::cni_bridge::test {
namespace {

class served : public world {
protected:
    std::unique_ptr<service> serve(const std::string& config = default_config) {
        network::environment env{
            .who = {instance, "net"}, .state_dir = state_dir + "/" + instance, .seed = 0, .log = {}};
        auto started = service::start(*parse_settings(config), std::move(env), [this](bool, std::string_view line) {
            const std::lock_guard lock(mutex_);
            logged.emplace_back(line);
        });
        EXPECT_TRUE(started);
        return *std::move(started);
    }
    /// Runs f on the service's thread and gives its result.
    template <class F>
    static auto on(service& s, F f) {
        using value = decltype(f(std::declval<network&>()));
        auto done = std::make_shared<std::promise<value>>();
        auto answer = done->get_future();
        s.post([done, f](network& net) { done->set_value(f(net)); });
        return answer;
    }
    bool has_table() const {
        auto netfilter = *netlink::socket::open(NETLINK_NETFILTER);
        return *netlink::nft::has_table(netfilter, "gantry-" + instance);
    }
    std::mutex mutex_;
};

TEST_F(served, many_adds_at_once_get_addresses_of_their_own) {
    const auto s = serve();
    const netns pods[32];
    std::vector<std::future<std::string>> open;
    for (int i = 0; i < 32; ++i)
        open.push_back(on(*s, [r = request("p" + std::to_string(i), pods[i],
                                           {tcp(static_cast<std::uint16_t>(8000 + i), 80)})](network& net) {
            const auto made = net.add(r, no_steps);
            return made ? v4_of(*made) : made.error().message;
        }));
    std::set<std::string> addresses;
    for (auto& one : open) addresses.insert(one.get());
    EXPECT_EQ(addresses.size(), 32u);
    EXPECT_TRUE(addresses.contains("10.77.0.2")) << *addresses.begin();
}

TEST_F(served, repairs_a_flushed_ruleset_by_itself_and_at_once) {
    const auto s = serve();
    const netns pod;
    on(*s, [&](network& net) { return net.add(request("a", pod, {tcp(8080, 80)}), no_steps).ok(); }).get();
    ASSERT_TRUE(has_table());
    nft("flush ruleset");
    EXPECT_TRUE(eventually([&] { return has_table(); })); // long before the next periodic audit
    EXPECT_TRUE(on(*s, [&](network& net) { return net.check({"a", "eth0"}, pod.fd()).ok(); }).get());
}

TEST_F(served, deletes_the_link_of_a_deleted_pod_whose_namespace_stays) {
    const auto s = serve();
    const netns pod;
    for (const auto* id : {"a", "b"}) {
        on(*s, [&](network& net) { return net.add(request(id, pod), no_steps).ok(); }).get();
        ASSERT_TRUE(on(*s, [&](network& net) { return net.del({id, "eth0"}, no_steps).ok(); }).get());
    }
    auto inside = pod.route();
    EXPECT_TRUE(eventually([&] { return !*netlink::get_link(inside, "eth0"); }));
}

TEST_F(served, answers_what_was_posted_before_its_end) {
    auto s = serve();
    const netns pod;
    auto added = on(*s, [&](network& net) { return net.add(request("a", pod), no_steps).ok(); });
    s.reset();
    EXPECT_TRUE(added.get());
}

TEST_F(served, serves_once_the_obstacle_at_its_start_is_gone) {
    auto route = host->route();
    netlink::batch b;
    netlink::add_bridge(b, "gt-" + instance, {0x0a, 1}, 1500); // somebody else's
    ASSERT_TRUE(route.send(b));
    const auto s = serve();
    const netns pod;
    const auto add = [&](network& net) {
        const auto made = net.add(request("a", pod), no_steps);
        return made ? std::string() : made.error().message;
    };
    EXPECT_NE(on(*s, add).get().find("is not this plugin's bridge"), std::string::npos);
    netlink::batch gone;
    netlink::delete_link(gone, "gt-" + instance);
    ASSERT_TRUE(route.send(gone));
    EXPECT_EQ(on(*s, add).get(), "");
}

} // namespace
} // namespace gantry::cni_bridge::test
