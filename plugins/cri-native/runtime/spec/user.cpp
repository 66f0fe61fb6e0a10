#include "plugins/cri-native/runtime/spec/user.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/invalid.hpp"

namespace gantry::cri_native {

namespace {

constexpr std::uint32_t max_id = 4294967294u;

struct passwd_entry {
    std::string_view name;
    std::uint32_t uid;
    std::uint32_t gid;
    std::string_view home;
};

/// The first N colon-separated fields of a line; false when there are fewer.
template <std::size_t N>
bool split_fields(std::string_view line, std::array<std::string_view, N>& fields) {
    for (std::size_t i = 0; i < N; ++i) {
        const auto colon = line.find(':');
        fields[i] = line.substr(0, colon);
        if (colon == std::string_view::npos) return i + 1 == N;
        line.remove_prefix(colon + 1);
    }
    return true;
}

/// Calls fn with each line until it returns true.
template <class Fn>
void each_line(std::string_view text, Fn fn) {
    while (!text.empty()) {
        const auto end = text.find('\n');
        if (fn(text.substr(0, end))) return;
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + 1);
    }
}

template <class Match>
std::optional<passwd_entry> find_user(std::string_view passwd, Match match) {
    std::optional<passwd_entry> found;
    each_line(passwd, [&](std::string_view line) {
        std::array<std::string_view, 7> fields;
        if (!split_fields(line, fields) || fields[0].empty()) return false;
        const auto uid = parse_id(fields[2]);
        const auto gid = parse_id(fields[3]);
        if (!uid || !gid) return false;
        const passwd_entry entry{fields[0], *uid, *gid, fields[5]};
        if (match(entry)) found = entry;
        return found.has_value();
    });
    return found;
}

std::optional<std::uint32_t> find_group(std::string_view group, std::string_view name) {
    std::optional<std::uint32_t> found;
    each_line(group, [&](std::string_view line) {
        std::array<std::string_view, 4> fields;
        if (split_fields(line, fields) && fields[0] == name) found = parse_id(fields[2]);
        return found.has_value();
    });
    return found;
}

bool lists_member(std::string_view members, std::string_view user) {
    while (!members.empty()) {
        const auto comma = members.find(',');
        if (members.substr(0, comma) == user) return true;
        if (comma == std::string_view::npos) return false;
        members.remove_prefix(comma + 1);
    }
    return false;
}

void add_group(std::vector<std::uint32_t>& groups, std::uint32_t gid) {
    if (std::find(groups.begin(), groups.end(), gid) == groups.end()) groups.push_back(gid);
}

result<std::uint32_t> checked_id(std::int64_t value, std::string_view field) {
    if (value < 0 || value > max_id)
        return invalid(std::string(field) + " " + std::to_string(value) + " is not an id between 0 and 4294967294");
    return static_cast<std::uint32_t>(value);
}

struct user_name {
    std::string_view user;
    std::string_view group; ///< empty when none was named
};

result<user_name> split_user(std::string_view text, std::string_view image) {
    const auto colon = text.find(':');
    const user_name name{text.substr(0, colon), colon == std::string_view::npos ? "" : text.substr(colon + 1)};
    if (name.user.empty() || (colon != std::string_view::npos && name.group.empty()) ||
        name.group.find(':') != std::string_view::npos)
        return invalid("user \"" + std::string(text) + "\" of image " + std::string(image) +
                       " is not of the form user or user:group; set securityContext.runAsUser");
    return name;
}

} // namespace

std::optional<std::uint32_t> parse_id(std::string_view text) {
    std::uint32_t id = 0;
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (failure != std::errc{} || end != text.data() + text.size() || id > max_id) return std::nullopt;
    return id;
}

result<identity> resolve_user(const user_request& request, std::string_view passwd, std::string_view group) {
    identity who;
    std::optional<passwd_entry> entry;
    std::string_view image_group;

    if (request.run_as_user) {
        GANTRY_TRY(who.uid, checked_id(*request.run_as_user, "run_as_user"));
        entry = find_user(passwd, [&](const passwd_entry& e) { return e.uid == who.uid; });
    } else {
        const bool from_image = request.run_as_username.empty();
        const std::string_view text = from_image ? request.image_user : request.run_as_username;
        user_name name{text, ""};
        if (from_image && !text.empty()) {
            GANTRY_TRY(name, split_user(text, request.image));
        }
        const auto id = name.user.empty() ? std::optional<std::uint32_t>(0) : parse_id(name.user);
        entry = find_user(passwd, [&](const passwd_entry& e) { return e.name == name.user || (id && e.uid == *id); });
        if (!entry && !id)
            return invalid("user \"" + std::string(name.user) + "\" has no entry in /etc/passwd of image " +
                           request.image + "; set securityContext.runAsUser to a number");
        who.uid = entry ? entry->uid : *id;
        image_group = name.group;
    }

    if (entry) {
        who.gid = entry->gid;
        if (!entry->home.empty()) who.home = entry->home;
    }
    if (request.run_as_group) {
        GANTRY_TRY(who.gid, checked_id(*request.run_as_group, "run_as_group"));
    } else if (!image_group.empty()) {
        auto gid = find_group(group, image_group);
        if (!gid) gid = parse_id(image_group);
        if (!gid)
            return invalid("group \"" + std::string(image_group) + "\" has no entry in /etc/group of image " +
                           request.image + "; set securityContext.runAsGroup to a number");
        who.gid = *gid;
    }

    add_group(who.groups, who.gid);
    if (request.merge_image_groups && entry) {
        each_line(group, [&](std::string_view line) {
            std::array<std::string_view, 4> fields;
            if (split_fields(line, fields) && lists_member(fields[3], entry->name))
                if (const auto gid = parse_id(fields[2])) add_group(who.groups, *gid);
            return false;
        });
    }
    for (const auto value : request.supplemental_groups) {
        GANTRY_TRY(const auto gid, checked_id(value, "supplemental_groups"));
        add_group(who.groups, gid);
    }
    return who;
}

} // namespace gantry::cri_native
