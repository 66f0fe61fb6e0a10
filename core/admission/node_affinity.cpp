#include "core/admission/node_affinity.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/json.hpp"

namespace gantry::core {

namespace {

using base::json::value;

const value* at(const value* from, std::string_view key) {
    const auto* object = from != nullptr ? from->if_object() : nullptr;
    return object != nullptr ? object->if_contains(key) : nullptr;
}

std::string text(const value* v) {
    const auto* s = v != nullptr ? v->if_string() : nullptr;
    return s != nullptr ? std::string(s->data(), s->size()) : std::string();
}

const base::json::array& items(const value* v) {
    static const base::json::array none;
    const auto* array = v != nullptr ? v->if_array() : nullptr;
    return array != nullptr ? *array : none;
}

std::optional<long long> number(const std::string& s) {
    long long out = 0;
    const auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
    return ec == std::errc() && end == s.data() + s.size() ? std::optional(out) : std::nullopt;
}

bool holds(const value& requirement, const std::map<std::string, std::string>& attributes) {
    const auto op = text(at(&requirement, "operator"));
    const auto& values = items(at(&requirement, "values"));
    const auto found = attributes.find(text(at(&requirement, "key")));
    const bool there = found != attributes.end();
    const auto listed = [&] {
        return std::any_of(values.begin(), values.end(), [&](const value& v) { return text(&v) == found->second; });
    };
    if (op == "In") return there && listed();
    if (op == "NotIn") return !there || !listed();
    if (op == "Exists") return there;
    if (op == "DoesNotExist") return !there;
    if ((op == "Gt" || op == "Lt") && there && values.size() == 1) {
        const auto have = number(found->second), limit = number(text(&values[0]));
        return have && limit && (op == "Gt" ? *have > *limit : *have < *limit);
    }
    return false;
}

bool term_holds(const value& term, const std::map<std::string, std::string>& labels, const std::string& node_name) {
    const auto& expressions = items(at(&term, "matchExpressions"));
    const auto& fields = items(at(&term, "matchFields"));
    if (expressions.empty() && fields.empty()) return false;
    const std::map<std::string, std::string> attributes{{"metadata.name", node_name}};
    return std::all_of(expressions.begin(), expressions.end(), [&](const value& r) { return holds(r, labels); }) &&
           std::all_of(fields.begin(), fields.end(), [&](const value& r) { return holds(r, attributes); });
}

} // namespace

bool matches_node(const model::pod_spec& spec, const std::map<std::string, std::string>& labels,
                  const std::string& node_name) {
    for (const auto& [key, wanted] : spec.node_selector) {
        const auto found = labels.find(key);
        if (found == labels.end() || found->second != wanted) return false;
    }
    if (!spec.affinity) return true;
    const auto affinity = base::parse_json(*spec.affinity.text, "spec.affinity");
    if (!affinity) return false;
    const auto* required = at(at(&*affinity, "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution");
    if (required == nullptr || required->is_null()) return true;
    const auto& terms = items(at(required, "nodeSelectorTerms"));
    return std::any_of(terms.begin(), terms.end(), [&](const value& t) { return term_holds(t, labels, node_name); });
}

} // namespace gantry::core
