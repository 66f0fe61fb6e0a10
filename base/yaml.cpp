#include "base/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>
#include <unordered_map>
#include <utility>

#include "base/yaml_guard.hpp"
#include "base/yaml_scalar.hpp"

namespace gantry::base {

namespace {

constexpr std::size_t depth_limit = 64;
constexpr std::size_t byte_budget = 32u << 20;
constexpr std::size_t key_limit = 1024; // as YAML 1.2.2 section 7.4 limits implicit keys

/// What leaves the event handler through the parser; parse_yaml turns it into an error.
struct refusal {
    int line;
    std::string what;
    gantry::code code = gantry::code::invalid;
};

[[noreturn]] void refuse(int line, std::string what) { throw refusal{line, std::move(what)}; }

struct cost {
    std::size_t nodes = 0;
    std::size_t bytes = 0;
};

/// Builds the JSON value of one document from the parser's events.
class builder final : public YAML::EventHandler {
public:
    /// spent is the whole stream's: many small documents must not expand to more than one large one may.
    explicit builder(cost& spent) : spent_(spent) {}

    int first_line() const { return first_line_; } ///< 0 until the document has begun
    int last_line() const { return last_line_; }
    yaml_document take() { return std::move(document_); }

    void OnDocumentStart(const YAML::Mark& mark) override { first_line_ = at(mark); }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const int line = at(mark);
        spend(line, 0);
        if (awaits_key()) refuse(line, "null cannot be a key");
        keep(anchor, json::value(nullptr), {1, 0});
        place(line, json::value(nullptr));
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& text) override {
        const int line = at(mark);
        spend(line, text.size());
        const bool plain = tag == "?" || tag.empty();
        if (plain && awaits_key() && text == "<<") {
            frame& map = frames_.back();
            map.key_is_merge = map.has_key = true;
            path_.resize(map.path_size);
            path_ += path_.empty() ? "<<" : ".<<";
            return;
        }
        if (awaits_key()) {
            keep(anchor, json::value(text), {1, text.size()});
            return take_key(line, text);
        }
        auto value = plain        ? resolve_plain_scalar(text)
                     : tag == "!" ? result<json::value>(json::value(text))
                                  : resolve_tagged_scalar(tag, text);
        if (!value) refuse(line, value.error().message);
        keep(anchor, *value, {1, text.size()});
        place(line, *std::move(value));
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const int line = at(mark);
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end()) refuse(line, "an alias to a node that contains it");
        spend(line, found->second.second.bytes, found->second.second.nodes);
        if (!awaits_key()) return place(line, json::value(found->second.first));
        if (!found->second.first.is_string()) refuse(line, "only a string can be a key by alias");
        take_key(line, std::string_view(found->second.first.get_string()));
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(mark, tag, "seq", anchor, json::array());
    }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open(mark, tag, "map", anchor, json::object());
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override { close(); }

private:
    struct frame {
        json::value value;
        YAML::anchor_t anchor = YAML::NullAnchor;
        int line = 0;
        std::size_t path_size = 0; // of path_ without this frame's current key or index
        cost before;
        std::string key;
        bool has_key = false;
        bool key_is_merge = false;
        std::vector<json::value> merges;
    };

    int at(const YAML::Mark& mark) { return last_line_ = mark.line + 1; }

    void spend(int line, std::size_t bytes, std::size_t nodes = 1) {
        spent_.nodes += nodes;
        spent_.bytes += bytes;
        if (spent_.nodes > yaml_node_limit)
            throw refusal{line, "more than " + std::to_string(yaml_node_limit) + " nodes after alias expansion",
                          gantry::code::resource};
        if (spent_.bytes > byte_budget)
            throw refusal{line, "more than " + std::to_string(byte_budget) + " bytes after alias expansion",
                          gantry::code::resource};
    }

    bool awaits_key() const { return !frames_.empty() && frames_.back().value.is_object() && !frames_.back().has_key; }

    void keep(YAML::anchor_t anchor, const json::value& value, cost size) {
        if (anchor != YAML::NullAnchor) anchors_.insert_or_assign(anchor, std::pair(value, size));
    }

    void record_line(int line) {
        spend(line, path_.size(), 0);
        document_.lines.emplace(path_, line);
    }

    void open(const YAML::Mark& mark, const std::string& tag, std::string_view type, YAML::anchor_t anchor,
              json::value empty) {
        const int line = at(mark);
        const cost before = spent_;
        spend(line, 0);
        if (awaits_key()) refuse(line, "a list or map cannot be a key");
        if (!tag.empty() && tag != "?" && tag != "!" && tag != "tag:yaml.org,2002:" + std::string(type))
            refuse(line, "\"" + tag.substr(0, 64) + "\" is a tag this node does not know");
        if (frames_.size() >= depth_limit) refuse(line, "nested deeper than " + std::to_string(depth_limit));
        enter_item(line);
        frame next;
        next.value = std::move(empty);
        next.anchor = anchor;
        next.line = line;
        next.path_size = path_.size();
        next.before = before;
        frames_.push_back(std::move(next));
    }

    void close() {
        frame done = std::move(frames_.back());
        frames_.pop_back();
        path_.resize(done.path_size);
        for (auto& source : done.merges) merge(done, std::move(source));
        if (done.anchor != YAML::NullAnchor) {
            const cost size{spent_.nodes - done.before.nodes, spent_.bytes - done.before.bytes};
            spend(done.line, size.bytes, size.nodes); // the copy that aliases are made from
            keep(done.anchor, done.value, size);
        }
        set(done.line, std::move(done.value));
    }

    /// Keys of the map win over merged ones, earlier sources over later ones (YAML 1.1 merge key).
    static void merge(frame& into, json::value source) {
        auto& object = into.value.as_object();
        for (auto& [key, value] : source.as_object()) object.emplace(key, std::move(value));
    }

    void place(int line, json::value value) {
        enter_item(line);
        set(line, std::move(value));
    }

    /// Keys are taken as written: `on: x` is the key "on", whatever `on` would be as a value.
    void take_key(int line, std::string_view key) {
        frame& map = frames_.back();
        map.key = key;
        if (map.key.size() > key_limit) refuse(line, "a key longer than " + std::to_string(key_limit) + " bytes");
        path_.resize(map.path_size);
        path_ += (path_.empty() ? "" : ".") + map.key;
        if (map.value.get_object().contains(map.key)) {
            const auto first = document_.lines.find(path_);
            refuse(line,
                   "key \"" + map.key + "\" is given twice" +
                       (first == document_.lines.end() ? "" : ", first in line " + std::to_string(first->second)));
        }
        map.has_key = true;
        record_line(line);
    }

    /// Before a value's own path is needed: the index of a list item (a key has set the path already).
    void enter_item(int line) {
        if (frames_.empty() || !frames_.back().value.is_array()) return;
        frame& list = frames_.back();
        path_.resize(list.path_size);
        path_ += "[" + std::to_string(list.value.get_array().size()) + "]";
        record_line(line);
    }

    void set(int line, json::value value) {
        if (frames_.empty()) {
            document_.value = std::move(value);
            return;
        }
        frame& parent = frames_.back();
        if (parent.value.is_array()) {
            parent.value.get_array().push_back(std::move(value));
        } else if (std::exchange(parent.has_key, false); std::exchange(parent.key_is_merge, false)) {
            take_merge(line, parent, std::move(value));
        } else {
            parent.value.get_object().emplace(parent.key, std::move(value));
        }
    }

    static void take_merge(int line, frame& parent, json::value value) {
        if (value.is_object()) {
            parent.merges.push_back(std::move(value));
            return;
        }
        if (!value.is_array()) refuse(line, "a merge key (<<) takes a map or a list of maps");
        for (auto& source : value.get_array()) {
            if (!source.is_object()) refuse(line, "a merge key (<<) takes a map or a list of maps");
            parent.merges.push_back(std::move(source));
        }
    }

    yaml_document document_;
    std::vector<frame> frames_;
    std::string path_;
    std::unordered_map<YAML::anchor_t, std::pair<json::value, cost>> anchors_;
    cost& spent_;
    int first_line_ = 0;
    int last_line_ = 0;
};

/// A stream over bytes that are not ours, without a copy.
class view_buffer : public std::streambuf {
public:
    explicit view_buffer(std::string_view text) {
        char* start = const_cast<char*>(text.data()); // streambuf's interface; nothing here writes
        setg(start, start, start + text.size());
    }
};

/// The lines of a text, asked for in ascending order.
class line_reader {
public:
    explicit line_reader(std::string_view text) : rest_(text) {}
    std::string_view line(int number) {
        for (; number_ < number && !rest_.empty(); ++number_)
            rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size() - 1) + 1);
        return rest_.substr(0, rest_.find('\n'));
    }

private:
    std::string_view rest_;
    int number_ = 1;
};

/// yaml-cpp takes rubbish after a document for the next document: between two there must be a marker.
bool has_marker(line_reader& lines, int from, int to) {
    for (int i = from; i <= to; ++i)
        if (const auto line = lines.line(i); line.starts_with("---") || line.starts_with("...")) return true;
    return false;
}

std::string explain(const YAML::Exception& fault, std::string_view text, int line) {
    if (line_reader(text).line(line).starts_with('\t')) return "a tab cannot indent YAML; use spaces";
    return fault.msg;
}

} // namespace

result<std::vector<yaml_document>> parse_yaml(std::string_view text, std::string_view file) {
    GANTRY_CHECK(check_yaml_text(text, file));
    const auto fault = [&](int line, const std::string& what, code c = code::invalid) {
        return error{.code = c, .message = std::string(file) + ":" + std::to_string(line) + ": " + what};
    };
    try {
        view_buffer buffer(text);
        std::istream stream(&buffer);
        YAML::Parser parser(stream);
        std::vector<yaml_document> documents;
        cost spent;
        line_reader lines(text);
        for (int last_line = 0;;) {
            builder next(spent);
            if (!parser.HandleNextDocument(next)) return documents;
            if (next.first_line() == 0) continue;
            if (!documents.empty() && !has_marker(lines, last_line, next.first_line()))
                return fault(next.first_line(), "text after the end of the document; separate documents with ---");
            last_line = next.last_line();
            documents.push_back(next.take());
        }
    } catch (const refusal& refused) {
        return fault(refused.line, refused.what, refused.code);
    } catch (const YAML::Exception& broken) {
        const int line = broken.mark.line + 1;
        return fault(line, explain(broken, text, line));
    }
}

} // namespace gantry::base
