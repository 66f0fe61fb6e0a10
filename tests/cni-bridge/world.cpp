#include "tests/cni-bridge/world.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "base/files.hpp"

namespace gantry::cni_bridge::test {

namespace {

[[noreturn]] void die(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

template <class T>
T must(result<T> outcome) {
    if (!outcome) throw std::runtime_error(outcome.error().message);
    return *std::move(outcome);
}
void must(const result<void>& outcome) {
    if (!outcome) throw std::runtime_error(outcome.error().message);
}

struct endpoint {
    sockaddr_storage storage{};
    socklen_t size = 0;
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
    sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

endpoint endpoint_of(const std::string& address, std::uint16_t port) {
    const auto ip = must(netlink::ip_address::parse(address));
    endpoint e;
    if (ip.v6) {
        auto& in6 = reinterpret_cast<sockaddr_in6&>(e.storage);
        in6.sin6_family = AF_INET6;
        in6.sin6_port = htons(port);
        std::memcpy(&in6.sin6_addr, ip.raw.data(), 16);
        e.size = sizeof in6;
    } else {
        auto& in = reinterpret_cast<sockaddr_in&>(e.storage);
        in.sin_family = AF_INET;
        in.sin_port = htons(port);
        std::memcpy(&in.sin_addr, ip.raw.data(), 4);
        e.size = sizeof in;
    }
    return e;
}

std::string text_of(const endpoint& e) {
    char buffer[INET6_ADDRSTRLEN] = "";
    const void* address = e.storage.ss_family == AF_INET6
                              ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(e.storage).sin6_addr)
                              : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(e.storage).sin_addr);
    ::inet_ntop(e.storage.ss_family, address, buffer, sizeof buffer);
    return buffer;
}

base::unique_fd socket_in(const netns& in, int family, int type) {
    base::unique_fd fd;
    in.run([&] { fd.reset(::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); });
    if (!fd) die("socket");
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    return fd;
}

bool ready(int fd, short events, std::chrono::milliseconds timeout) {
    pollfd one{.fd = fd, .events = events, .revents = 0};
    return ::poll(&one, 1, static_cast<int>(timeout.count())) == 1;
}

void join(const netns& host, const netns& outside) {
    auto here = host.route();
    auto there = outside.route();
    netlink::batch b;
    netlink::change_link(b, 1, "lo", {.up = true});
    netlink::add_veth(b, {.name = "up0",
                          .mac = {0x02, 1},
                          .peer_name = "down0",
                          .peer_mac = {0x02, 2},
                          .peer_netns = outside.fd(),
                          .mtu = 1500});
    must(here.send(b));
    const auto up = must(netlink::get_link(here, "up0"))->index;
    const auto down = must(netlink::get_link(there, "down0"))->index;
    netlink::batch h;
    netlink::change_link(h, up, "up0", {.up = true});
    netlink::add_address(h, up, must(netlink::ip_network::parse("192.0.2.1/24")), "up0");
    netlink::add_address(h, up, must(netlink::ip_network::parse("2001:db8::1/64")), "up0");
    must(here.send(h));
    netlink::batch o;
    netlink::change_link(o, 1, "lo", {.up = true});
    netlink::change_link(o, down, "down0", {.up = true});
    netlink::add_address(o, down, must(netlink::ip_network::parse("192.0.2.9/24")), "down0");
    netlink::add_address(o, down, must(netlink::ip_network::parse("2001:db8::9/64")), "down0");
    must(there.send(o));
    netlink::batch r;
    for (const auto* gateway : {"192.0.2.9", "2001:db8::9"}) {
        const auto ip = must(netlink::ip_address::parse(gateway));
        netlink::add_route(r, {.destination = {{.v6 = ip.v6}, 0}, .gateway = ip, .index = up}, "up0");
    }
    must(here.send(r));
}

} // namespace

netns::netns() {
    std::thread([&] {
        if (::unshare(CLONE_NEWNET) == 0) fd_.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    }).join();
    if (!fd_) die("unshare the network namespace (needs root)");
}

netns netns::current() { return netns(base::unique_fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC))); }

void netns::run(const std::function<void()>& f) const {
    std::thread([&] {
        if (::setns(fd_.get(), CLONE_NEWNET) != 0) std::abort();
        f();
    }).join();
}

netlink::socket netns::route() const { return must(netlink::socket::open_in(fd_.get(), NETLINK_ROUTE)); }

peer peer::tcp_listener(const netns& in, const std::string& address, std::uint16_t port) {
    const auto at = endpoint_of(address, port);
    auto fd = socket_in(in, at.storage.ss_family, SOCK_STREAM);
    if (::bind(fd.get(), at.get(), at.size) != 0 || ::listen(fd.get(), 16) != 0) die("listen on " + address);
    return peer(std::move(fd));
}

peer peer::tcp_connection(const netns& in, const std::string& address, std::uint16_t port,
                          std::chrono::milliseconds timeout) {
    const auto to = endpoint_of(address, port);
    peer made(socket_in(in, to.storage.ss_family, SOCK_STREAM));
    made.connected_ = ::connect(made.fd_.get(), to.get(), to.size) == 0;
    if (!made.connected_ && errno == EINPROGRESS && ready(made.fd_.get(), POLLOUT, timeout)) {
        int fault = 0;
        socklen_t size = sizeof fault;
        ::getsockopt(made.fd_.get(), SOL_SOCKET, SO_ERROR, &fault, &size);
        made.connected_ = fault == 0;
    }
    return made;
}

peer peer::udp(const netns& in, const std::string& address, std::uint16_t port) {
    const auto at = endpoint_of(address, port);
    auto fd = socket_in(in, at.storage.ss_family, SOCK_DGRAM);
    if (::bind(fd.get(), at.get(), at.size) != 0) die("bind " + address);
    return peer(std::move(fd));
}

peer peer::accept(std::string& from) const {
    endpoint e;
    e.size = sizeof e.storage;
    peer made{base::unique_fd()};
    made.connected_ = false;
    if (!ready(fd_.get(), POLLIN, std::chrono::seconds(3))) return made;
    made.fd_.reset(::accept4(fd_.get(), e.get(), &e.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    made.connected_ = static_cast<bool>(made.fd_);
    from = text_of(e);
    return made;
}

void peer::send(const std::string& text) const {
    if (::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) die("send");
}

void peer::send_to(const std::string& text, const std::string& address, std::uint16_t port) const {
    const auto to = endpoint_of(address, port);
    if (::sendto(fd_.get(), text.data(), text.size(), 0, to.get(), to.size) != static_cast<ssize_t>(text.size()))
        die("send to " + address);
}

void peer::answer(const std::string& text) const {
    ::sendto(fd_.get(), text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(last_.data()),
             static_cast<socklen_t>(last_.size()));
}

std::string peer::receive(std::string* from, std::chrono::milliseconds timeout) {
    if (!ready(fd_.get(), POLLIN, timeout)) return {};
    char buffer[2048];
    endpoint e;
    e.size = sizeof e.storage;
    const ssize_t n = ::recvfrom(fd_.get(), buffer, sizeof buffer, 0, e.get(), &e.size);
    if (n < 0) return {};
    const auto* raw = reinterpret_cast<const std::uint8_t*>(&e.storage);
    last_.assign(raw, raw + e.size);
    if (from) *from = text_of(e);
    return {buffer, static_cast<std::size_t>(n)};
}

void world::SetUp() {
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << "needs root";
    host.emplace(netns::current());
    outside.emplace();
    join(*host, *outside);
    static int counter = 0;
    instance = "t" + std::to_string(::getpid() % 100000) + "x" + std::to_string(++counter);
    char path[] = "/tmp/gantry-cni-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    state_dir = path;
}

void world::TearDown() {
    if (!state_dir.empty()) must(base::remove_tree(state_dir));
    if (HasFailure())
        for (const auto& line : logged) std::fprintf(stderr, "log: %s\n", line.c_str());
}

std::unique_ptr<network> world::make(const std::string& config, const std::string& node_instance,
                                     const std::string& plugin) {
    network::environment env{.who = {node_instance.empty() ? instance : node_instance, plugin},
                             .state_dir = state_dir + "/" + (node_instance.empty() ? instance : node_instance),
                             .seed = 0,
                             .log = [this](std::string_view line) { logged.emplace_back(line); }};
    return std::make_unique<network>(must(parse_settings(config)), std::move(env));
}

add_request world::request(const std::string& id, const netns& pod, std::vector<port_mapping> ports) {
    return {.container_id = id, .ifname = "eth0", .pod = "default/" + id, .netns = pod.fd(), .ports = std::move(ports)};
}

attached world::add(network& net, const std::string& id, const netns& pod, std::vector<port_mapping> ports) {
    return must(net.add(request(id, pod, std::move(ports)), no_steps));
}

std::vector<std::string> world::leftovers(network& net) {
    if (net.has_doomed()) must(net.delete_doomed());
    std::vector<std::string> found;
    auto route = host->route();
    const auto links = must(netlink::list_links(route));
    for (const auto& link : links)
        if (link.kind == "veth" && link.name != "up0") found.push_back("link " + link.name + " " + link.alias);
    auto netfilter = must(netlink::socket::open(NETLINK_NETFILTER));
    const auto table = "gantry-" + instance;
    const auto sets = must(netlink::nft::list_sets(netfilter, table));
    for (const auto& set : sets)
        if (const auto n = must(netlink::nft::list_elements(netfilter, table, set)).size(); n > 0)
            found.push_back("set " + set + ": " + std::to_string(n) + " elements");
    const auto files = must(base::list_dir(state_dir + "/" + instance + "/leases"));
    for (const auto& file : files) found.push_back("lease " + file);
    for (const auto& [key, l] : net.leases()) found.push_back("lease in memory of " + l.holder());
    return found;
}

namespace {
port_mapping mapping(std::uint8_t protocol, std::uint16_t host_port, std::uint16_t container_port,
                     const std::string& host_ip) {
    port_mapping m{.protocol = protocol, .host_port = host_port, .container_port = container_port};
    if (!host_ip.empty()) m.host_ip = must(netlink::ip_address::parse(host_ip));
    return m;
}
} // namespace

port_mapping tcp(std::uint16_t host_port, std::uint16_t container_port, const std::string& host_ip) {
    return mapping(IPPROTO_TCP, host_port, container_port, host_ip);
}
port_mapping udp(std::uint16_t host_port, std::uint16_t container_port, const std::string& host_ip) {
    return mapping(IPPROTO_UDP, host_port, container_port, host_ip);
}

std::string v4_of(const attached& a) {
    for (const auto& address : a.held.addresses)
        if (!address.v6) return address.text();
    return {};
}

std::string v6_of(const attached& a) {
    for (const auto& address : a.held.addresses)
        if (address.v6) return address.text();
    return {};
}

std::string code_of(const error& e) {
    const auto from = e.detail.find("\"cniCode\":\"");
    if (from == std::string::npos) return {};
    const auto start = from + 11;
    return e.detail.substr(start, e.detail.find('"', start) - start);
}

void nft(const std::string& text) {
    std::FILE* pipe = ::popen("nft -f -", "w");
    if (!pipe || std::fwrite(text.data(), 1, text.size(), pipe) != text.size() || ::pclose(pipe) != 0)
        die("nft: " + text);
}

bool eventually(const std::function<bool()>& f) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!f()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

} // namespace gantry::cni_bridge::test
