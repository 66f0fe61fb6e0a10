// A small world of network namespaces: a "host", an "outside" machine joined to it by a link, and pods. Real kernel,
// real packets, nothing outside of these namespaces.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/unique_fd.hpp"
#include "plugins/cni-bridge/network.hpp"

namespace gantry::cni_bridge::test {

/// A network namespace that lives as long as this descriptor and what runs or listens inside.
class netns {
public:
    /// A new one, with nothing but lo, which is down.
    netns();
    /// The calling thread's.
    static netns current();

    int fd() const { return fd_.get(); }
    /// Runs f on a thread inside.
    void run(const std::function<void()>& f) const;
    netlink::socket route() const;

private:
    explicit netns(base::unique_fd fd) : fd_(std::move(fd)) {}
    base::unique_fd fd_;
};

/// A socket of some namespace with a receive timeout, used from any thread.
class peer {
public:
    explicit peer(base::unique_fd fd) : fd_(std::move(fd)) {}

    static peer tcp_listener(const netns& in, const std::string& address, std::uint16_t port);
    /// A socket whose connect() has failed or timed out has connected() false.
    static peer tcp_connection(const netns& in, const std::string& address, std::uint16_t port,
                               std::chrono::milliseconds timeout = std::chrono::seconds(3));
    static peer udp(const netns& in, const std::string& address, std::uint16_t port);

    bool connected() const { return connected_; }
    /// Waits for a connection; `from` gets the peer's address. Not connected() when none came.
    peer accept(std::string& from) const;
    void send(const std::string& text) const;
    void send_to(const std::string& text, const std::string& address, std::uint16_t port) const;
    void answer(const std::string& text) const; ///< to whom the last receive() came from
    /// "" when nothing came within the timeout.
    std::string receive(std::string* from = nullptr, std::chrono::milliseconds timeout = std::chrono::seconds(3));

private:
    base::unique_fd fd_;
    bool connected_ = true;
    std::vector<std::uint8_t> last_;
};

/// host 192.0.2.1 and 2001:db8::1 -- outside 192.0.2.9 and 2001:db8::9, which knows no route to the pods.
class world : public testing::Test {
protected:
    void SetUp() override; ///< moves the test's thread into a new "host"
    void TearDown() override;

    /// A network of this host. Pods are dual-stack. Keeps what it logged in `logged`.
    std::unique_ptr<network> make(const std::string& config = default_config, const std::string& instance = "",
                                  const std::string& plugin = "net");
    static add_request request(const std::string& id, const netns& pod, std::vector<port_mapping> ports = {});
    /// ADD that must succeed.
    static attached add(network& net, const std::string& id, const netns& pod, std::vector<port_mapping> ports = {});
    /// Everything of our kind in the host, one line each: links, table elements, lease files. Empty when nothing
    /// leaked.
    std::vector<std::string> leftovers(network& net);

    static constexpr const char* default_config = R"({"subnet": "10.77.0.0/24", "subnet6": "fd77::/64"})";

    std::string instance; ///< random
    std::string state_dir;
    std::optional<netns> host;
    std::optional<netns> outside;
    std::vector<std::string> logged;
};

inline const step_fn no_steps = [](std::string_view) {};
port_mapping tcp(std::uint16_t host_port, std::uint16_t container_port, const std::string& host_ip = "");
port_mapping udp(std::uint16_t host_port, std::uint16_t container_port, const std::string& host_ip = "");
std::string v4_of(const attached& a);
std::string v6_of(const attached& a);
std::string code_of(const error& e); ///< its cniCode

/// Runs `text` through nft -f, in the calling thread's namespace.
void nft(const std::string& text);

/// Polls until f is true; false after ten seconds.
bool eventually(const std::function<bool()>& f);

} // namespace gantry::cni_bridge::test
