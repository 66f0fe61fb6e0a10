#include "core/config/faults.hpp"

#include <algorithm>

namespace gantry::core {

int fault_list::line_of(std::string_view path) const {
    std::string at(path);
    for (;;) {
        if (const auto found = lines_.find(at); found != lines_.end()) return found->second;
        const auto cut = at.find_last_of(".[");
        if (cut == std::string::npos) return 1;
        at.resize(cut);
    }
}

void fault_list::add(std::string_view path, std::string_view what) {
    const int line = line_of(path);
    std::string text = file_ + ":" + std::to_string(line) + ": ";
    if (!path.empty()) text.append(path).append(": ");
    text.append(what);
    faults_.push_back({line, std::move(text)});
}

std::vector<std::string> fault_list::texts() const {
    auto sorted = faults_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const fault& a, const fault& b) { return a.line < b.line; });
    std::vector<std::string> texts;
    texts.reserve(sorted.size());
    for (auto& fault : sorted) texts.push_back(std::move(fault.text));
    return texts;
}

result<void> fault_list::verdict() const {
    if (faults_.empty()) return {};
    std::string all;
    for (const auto& text : texts()) all += (all.empty() ? "" : "\n") + text;
    return error{.code = code::invalid, .message = std::move(all)};
}

} // namespace gantry::core
