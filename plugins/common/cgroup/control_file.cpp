#include "plugins/common/cgroup/control_file.hpp"

#include <fcntl.h>

#include <charconv>
#include <limits>

#include "base/files.hpp"
#include "base/unique_fd.hpp"

namespace gantry::cgroup {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> pieces;
    while (!text.empty()) {
        const auto end = std::min(text.find(separator), text.size());
        if (end > 0) pieces.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return pieces;
}

result<std::string> read_control(const std::string& path) {
    GANTRY_TRY(auto text, base::read_file(path));
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

result<void> write_control(const std::string& path, std::string_view value) {
    base::unique_fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) return sys_error("open " + path, errno);
    for (;;) {
        if (::write(fd.get(), value.data(), value.size()) >= 0) return {};
        if (errno != EINTR) return sys_error("write \"" + std::string(value) + "\" to " + path, errno);
    }
}

std::uint64_t to_number(std::string_view text) {
    if (text == "max") return std::numeric_limits<std::uint64_t>::max();
    std::uint64_t value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    return ec == std::errc{} && end == text.data() + text.size() ? value : 0;
}

std::uint64_t number_of(std::string_view text, std::string_view key) {
    for (const auto line : split(text, '\n'))
        if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ')
            return to_number(line.substr(key.size() + 1));
    return 0;
}

std::uint64_t read_number(const std::string& path) {
    const auto text = read_control(path);
    return text ? to_number(*text) : 0;
}

} // namespace gantry::cgroup
