// "Did you mean": the candidate that was most likely intended by a misspelt word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gantry::core {

/// The candidate nearest to `word` by edit distance (a swap of neighbours counts one), if it is within a third of the
/// word's length; else empty.
std::string suggest(std::string_view word, const std::vector<std::string>& candidates);

/// ` (did you mean "X"?)` or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b, c".
std::string join(const std::vector<std::string>& words);

} // namespace gantry::core
