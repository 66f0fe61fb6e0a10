#include "core/run/host_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include "base/unique_fd.hpp"

namespace gantry::core {

namespace {

std::string text_of(const sockaddr* address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (address->sa_family == AF_INET)
        ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
    else if (address->sa_family == AF_INET6)
        ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
    return text;
}

/// Connecting a UDP socket makes the kernel choose a source address and sends no packet. The peers are documentation
/// addresses (RFC 5737, RFC 3849), which only the default route covers.
std::string source_towards_default_route(int family) {
    base::unique_fd fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage storage{};
    socklen_t size = 0;
    if (family == AF_INET) {
        auto& to = reinterpret_cast<sockaddr_in&>(storage);
        to.sin_family = AF_INET;
        to.sin_port = htons(9);
        ::inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
        size = sizeof to;
    } else {
        auto& to = reinterpret_cast<sockaddr_in6&>(storage);
        to.sin6_family = AF_INET6;
        to.sin6_port = htons(9);
        ::inet_pton(AF_INET6, "2001:db8::1", &to.sin6_addr);
        size = sizeof to;
    }
    auto* address = reinterpret_cast<sockaddr*>(&storage);
    if (!fd || ::connect(fd.get(), address, size) != 0) return {};
    size = sizeof storage;
    if (::getsockname(fd.get(), address, &size) != 0) return {};
    return text_of(address);
}

std::string first_link_address() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> guard(list, &::freeifaddrs);
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        const bool usable = entry->ifa_addr != nullptr && (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0;
        if (usable && entry->ifa_addr->sa_family == AF_INET) return text_of(entry->ifa_addr);
    }
    return {};
}

} // namespace

std::string host_address() {
    for (const int family : {AF_INET, AF_INET6})
        if (auto address = source_towards_default_route(family); !address.empty()) return address;
    return first_link_address();
}

} // namespace gantry::core
