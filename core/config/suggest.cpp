#include "core/config/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace gantry::core {

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Optimal string alignment distance, case-insensitive.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        next[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1)});
            const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
            if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
        }
        std::swap(before, row);
        std::swap(row, next);
    }
    return row[b.size()];
}

} // namespace

std::string suggest(std::string_view word, const std::vector<std::string>& candidates) {
    constexpr std::size_t longest_word = 64; // the distance costs the product of the lengths
    if (word.size() > longest_word) return {};
    std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
    std::string found;
    for (const auto& candidate : candidates) {
        if (candidate.size() > longest_word) continue;
        if (const auto d = distance(word, candidate); d < best) {
            best = d;
            found = candidate;
        }
    }
    return found;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
    const auto found = suggest(word, candidates);
    return found.empty() ? std::string{} : " (did you mean \"" + found + "\"?)";
}

std::string join(const std::vector<std::string>& words) {
    std::string out;
    for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
    return out;
}

} // namespace gantry::core
