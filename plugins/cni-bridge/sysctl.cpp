#include "plugins/cni-bridge/sysctl.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.hpp"
#include "base/unique_fd.hpp"

namespace gantry::cni_bridge {

namespace {

const std::string root = "/proc/sys/";

result<void> write_sysctl(const std::string& path, std::string_view value) {
    const base::unique_fd fd(::open((root + path).c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) return sys_error("open " + root + path + " to write " + std::string(value), errno);
    if (::write(fd.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size()))
        return sys_error("write " + std::string(value) + " to " + root + path, errno);
    return {};
}

} // namespace

result<std::string> read_sysctl(const std::string& path) {
    GANTRY_TRY(auto value, base::read_file(root + path, 4096));
    while (!value.empty() && value.back() == '\n') value.pop_back();
    return value;
}

result<bool> set_sysctl(const std::string& path, std::string_view value) {
    GANTRY_TRY(const auto current, read_sysctl(path));
    if (current == value) return false;
    GANTRY_CHECK(write_sysctl(path, value));
    return true;
}

result<bool> enable_v6_forwarding() {
    const std::string conf = "net/ipv6/conf/";
    GANTRY_TRY(const auto current, read_sysctl(conf + "all/forwarding"));
    if (current == "1") return false;
    GANTRY_TRY(const auto links, base::list_dir(root + conf));
    for (const auto& link : links) {
        if (link == "all" || link == "default") continue;
        const auto accepts = read_sysctl(conf + link + "/accept_ra");
        if (!accepts || *accepts != "1") continue; // gone meanwhile, or not listening
        if (auto kept = set_sysctl(conf + link + "/accept_ra", "2"); !kept && kept.error().sys_errno != ENOENT)
            return std::move(kept).error();
    }
    GANTRY_CHECK(write_sysctl(conf + "all/forwarding", "1"));
    return true;
}

} // namespace gantry::cni_bridge
