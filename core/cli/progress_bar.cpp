#include "core/cli/progress_bar.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/cli/table.hpp"

namespace gantry::core::cli {

namespace {

std::size_t terminal_width() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// "sha256:0123…" as people know layers: the first 12 digits.
std::string short_name(const std::string& item) {
    const auto colon = item.find(':');
    return item.starts_with("sha256:") ? item.substr(colon + 1, 12) : item.substr(0, 32);
}

} // namespace

std::string progress_bar::line(const std::string& item, std::uint64_t done, std::uint64_t total, std::size_t width) {
    std::string text = short_name(item) + "  ";
    const std::string figures = total > 0 ? short_size(done) + "/" + short_size(total) : short_size(done);
    const std::size_t fixed = text.size() + figures.size() + 4;
    if (total > 0 && width > fixed + 10) {
        const std::size_t room = std::min<std::size_t>(width - fixed, 40);
        const auto full = static_cast<std::size_t>(static_cast<double>(std::min(done, total)) / static_cast<double>(total) *
                                                   static_cast<double>(room));
        text += "[" + std::string(full, '=') + std::string(room - full, ' ') + "]  ";
    }
    return (text + figures).substr(0, width);
}

void progress_bar::update(const std::string& item, std::uint64_t done, std::uint64_t total) {
    auto& entry = items_[item];
    entry.done = done;
    entry.total = total;
    if (terminal_) return redraw();
    if (total > 0 && done >= total && !std::exchange(entry.announced, true))
        std::fprintf(stderr, "%s: %s done\n", short_name(item).c_str(), short_size(total).c_str());
}

void progress_bar::redraw() {
    std::string out;
    if (drawn_ > 0) out += "\x1b[" + std::to_string(drawn_) + "A";
    const std::size_t width = terminal_width();
    for (const auto& [item, entry] : items_)
        out += "\r\x1b[2K" + line(item, entry.done, entry.total, width) + "\n";
    drawn_ = items_.size();
    std::fwrite(out.data(), 1, out.size(), stderr);
}

void progress_bar::finish() {
    items_.clear();
    drawn_ = 0;
}

} // namespace gantry::core::cli
