#include "core/admin/http.hpp"

namespace gantry::core::admin {

namespace {

std::vector<std::string> split_path(std::string_view path) {
    std::vector<std::string> parts;
    while (!path.empty()) {
        if (path.front() == '/') path.remove_prefix(1);
        const auto end = std::min(path.find('/'), path.size());
        parts.emplace_back(path.substr(0, end));
        path.remove_prefix(end);
    }
    return parts;
}

bool is_param(std::string_view part) { return part.size() > 2 && part.front() == '{' && part.back() == '}'; }

std::optional<std::map<std::string, std::string>> match_parts(const std::vector<std::string>& pattern,
                                                              const std::vector<std::string>& path) {
    std::map<std::string, std::string> params;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const std::string_view want = pattern[i];
        if (i >= path.size()) return std::nullopt;
        if (is_param(want) && want.ends_with("...}")) {
            std::string rest = path[i];
            for (std::size_t j = i + 1; j < path.size(); ++j) rest += "/" + path[j];
            params.emplace(want.substr(1, want.size() - 5), std::move(rest));
            return params;
        }
        if (is_param(want))
            params.emplace(want.substr(1, want.size() - 2), path[i]);
        else if (want != path[i])
            return std::nullopt;
    }
    if (pattern.size() != path.size()) return std::nullopt;
    return params;
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

} // namespace

std::string http_request::query_or(const std::string& name, std::string fallback) const {
    const auto it = query.find(name);
    return it == query.end() ? std::move(fallback) : it->second;
}

bool http_request::flag(const std::string& name) const {
    const auto it = query.find(name);
    return it != query.end() && it->second != "0" && it->second != "false";
}

void router::add(std::string method, std::string pattern, handler h) {
    routes_.push_back({std::move(method), split_path(pattern), std::move(h)});
}

router::match router::find(std::string_view method, std::string_view path) const {
    match found;
    const auto parts = split_path(path);
    for (const auto& route : routes_) {
        auto params = match_parts(route.parts, parts);
        if (!params) continue;
        found.path_known = true;
        if (route.method != method) continue;
        found.found = &route.handle;
        found.params = std::move(*params);
        break;
    }
    return found;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+' && plus_is_space) {
            out += ' ';
        } else if (text[i] != '%') {
            out += text[i];
        } else {
            if (i + 2 >= text.size()) return std::nullopt;
            const int high = hex_digit(text[i + 1]);
            const int low = hex_digit(text[i + 2]);
            if (high < 0 || low < 0) return std::nullopt;
            out += static_cast<char>(high * 16 + low);
            i += 2;
        }
    }
    return out;
}

} // namespace gantry::core::admin
