#include "core/cli/json_path.hpp"

namespace gantry::core::cli {

const base::json::value* find(const base::json::value& root, std::string_view path) {
    const base::json::value* at = &root;
    while (!path.empty()) {
        const auto dot = std::min(path.find('.'), path.size());
        const auto* object = at->if_object();
        if (!object) return nullptr;
        at = object->if_contains({path.data(), dot});
        if (!at) return nullptr;
        path.remove_prefix(std::min(dot + 1, path.size()));
    }
    return at;
}

std::string text_at(const base::json::value& root, std::string_view path, std::string_view fallback) {
    const auto* value = find(root, path);
    if (!value || value->is_null() || value->is_structured()) return std::string(fallback);
    if (const auto* text = value->if_string()) return std::string(*text);
    return base::to_text(*value);
}

std::int64_t number_at(const base::json::value& root, std::string_view path, std::int64_t fallback) {
    const auto* value = find(root, path);
    if (!value || !value->is_number()) return fallback;
    boost::system::error_code ec;
    const auto number = value->to_number<std::int64_t>(ec);
    return ec ? fallback : number;
}

const base::json::array& array_at(const base::json::value& root, std::string_view path) {
    static const base::json::array none;
    const auto* value = find(root, path);
    return value && value->is_array() ? value->get_array() : none;
}

} // namespace gantry::core::cli
