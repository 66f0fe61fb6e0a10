#include "core/host/quarantine.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace gantry::core {

namespace {

constexpr std::int64_t window_ns = 60'000'000'000;
constexpr std::size_t too_many = 3;

std::vector<std::string_view> words(std::string_view line) {
    std::vector<std::string_view> out;
    while (!line.empty()) {
        const auto cut = std::min(line.find(' '), line.size());
        if (cut != 0) out.push_back(line.substr(0, cut));
        line.remove_prefix(std::min(cut + 1, line.size()));
    }
    return out;
}

std::optional<std::int64_t> number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string how_to_clear(const std::string& instance) { return ": replace it and run `gantry plugin enable " + instance + "`"; }

} // namespace

std::string format_mark(const loading_mark& mark) {
    return "loading " + mark.instance + " " + mark.id + " " + mark.sha256 + " " + mark.boot_id + " " + std::to_string(mark.unix_ns) + "\n";
}

std::optional<loading_mark> parse_mark(std::string_view text) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    const auto parts = words(text);
    if (parts.size() != 6 || parts[0] != "loading") return std::nullopt;
    const auto time = number(parts[5]);
    if (!time) return std::nullopt;
    return loading_mark{.instance = std::string(parts[1]),
                        .id = std::string(parts[2]),
                        .sha256 = std::string(parts[3]),
                        .boot_id = std::string(parts[4]),
                        .unix_ns = *time};
}

std::vector<crash_record> parse_crashes(std::string_view text) {
    std::vector<crash_record> records;
    while (!text.empty()) {
        const auto end = text.find('\n');
        if (end == std::string_view::npos) break; // cut short
        const auto parts = words(text.substr(0, end));
        text.remove_prefix(end + 1);
        if (parts.size() != 4) continue;
        if (const auto time = number(parts[0]))
            records.push_back({.unix_ns = *time,
                               .cause = std::string(parts[1]),
                               .instance = std::string(parts[2]),
                               .what = std::string(parts[3])});
    }
    return records;
}

std::string format_crashes(const std::vector<crash_record>& records) {
    std::string text;
    for (const auto& record : records)
        text += std::to_string(record.unix_ns) + " " + record.cause + " " + record.instance + " " + record.what + "\n";
    return text;
}

std::vector<verdict> judge_crashes(const std::optional<loading_mark>& mark, const std::vector<crash_record>& crashes,
                                   std::string_view boot_id) {
    std::vector<verdict> verdicts;
    const auto blames_another = [&](const crash_record& crash) {
        return crash.unix_ns >= mark->unix_ns && crash.instance != mark->instance;
    };
    if (mark && mark->boot_id == boot_id && std::none_of(crashes.begin(), crashes.end(), blames_another))
        verdicts.push_back({mark->instance, "the node ended while this plugin (" + mark->id + ", sha256 " + mark->sha256 +
                                                ") was loaded" + how_to_clear(mark->instance)});
    std::map<std::string, std::vector<const crash_record*>> by_instance;
    for (const auto& crash : crashes) by_instance[crash.instance].push_back(&crash);
    for (auto& [instance, list] : by_instance) {
        if (!verdicts.empty() && verdicts.front().instance == instance) continue;
        std::sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->unix_ns < b->unix_ns; });
        for (std::size_t i = too_many - 1; i < list.size(); ++i) {
            if (list[i]->unix_ns - list[i - (too_many - 1)]->unix_ns > window_ns) continue;
            verdicts.push_back({instance, "it ended the node 3 times within 60 s, last by " + list[i]->cause + " in " + list[i]->what +
                                              how_to_clear(instance)});
            break;
        }
    }
    return verdicts;
}

} // namespace gantry::core
