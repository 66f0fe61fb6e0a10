// Progress on a terminal: one line per item, redrawn in place. On anything else: one line when an item ends.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace gantry::core::cli {

class progress_bar {
public:
    /// Draws on stderr; `terminal` says whether it may move the cursor.
    explicit progress_bar(bool terminal) : terminal_(terminal) {}

    /// Latest figures of one item; total 0 when unknown.
    void update(const std::string& item, std::uint64_t done, std::uint64_t total);
    /// Ends the display: what was not complete stays as it stands.
    void finish();

    /// One line of at most `width` columns.
    static std::string line(const std::string& item, std::uint64_t done, std::uint64_t total, std::size_t width);

private:
    struct figures {
        std::uint64_t done = 0;
        std::uint64_t total = 0;
        bool announced = false;
    };
    void redraw();

    bool terminal_;
    std::size_t drawn_ = 0;
    std::map<std::string, figures> items_;
};

} // namespace gantry::core::cli
