#include "core/pod/dns.hpp"

#include <algorithm>

namespace gantry::core {

namespace {

constexpr std::size_t max_servers = 3;
constexpr std::size_t max_searches = 32;
constexpr std::size_t max_search_characters = 2048;
constexpr std::size_t max_name = 253;

std::vector<std::string> words(std::string_view line) {
    std::vector<std::string> out;
    while (true) {
        const auto start = line.find_first_not_of(" \t\r");
        if (start == std::string_view::npos) return out;
        line.remove_prefix(start);
        const auto end = std::min(line.find_first_of(" \t\r"), line.size());
        out.emplace_back(line.substr(0, end));
        line.remove_prefix(end);
    }
}

void add_new(std::vector<std::string>& list, const std::vector<std::string>& more) {
    for (const auto& item : more)
        if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

/// "ndots:5" and "ndots:2" have one name.
std::string_view option_name(std::string_view option) { return option.substr(0, option.find(':')); }

void merge(dns_config& out, const model::pod_dns_config& own) {
    add_new(out.servers, own.nameservers);
    add_new(out.searches, own.searches);
    for (const auto& option : own.options) {
        const auto text = option.value && !option.value->empty() ? option.name + ":" + *option.value : option.name;
        const auto same = std::find_if(out.options.begin(), out.options.end(),
                                       [&](const auto& o) { return option_name(o) == option.name; });
        if (same == out.options.end())
            out.options.push_back(text);
        else
            *same = text;
    }
}

std::string shown(const std::vector<std::string>& list) {
    std::string out;
    for (const auto& item : list) out += (out.empty() ? "" : " ") + item;
    return out;
}

/// Leaves what resolvers can use; the note says what went.
std::string trim(dns_config& config) {
    std::string note;
    const auto say = [&](const std::string& text) { note += (note.empty() ? "" : " ") + text; };
    if (config.servers.size() > max_servers) {
        config.servers.resize(max_servers);
        say("Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: " +
            shown(config.servers));
    }
    auto& searches = config.searches;
    const auto before = searches.size();
    std::erase_if(searches, [](const std::string& s) { return s.size() > max_name; });
    if (searches.size() > max_searches) searches.resize(max_searches);
    while (shown(searches).size() > max_search_characters) searches.pop_back();
    if (searches.size() != before)
        say("Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " +
            shown(searches));
    return note;
}

bool is_cluster_first(const model::pod_spec& spec) {
    return spec.dns_policy == "ClusterFirstWithHostNet" || (spec.dns_policy == "ClusterFirst" && !spec.host_network);
}

} // namespace

dns_config parse_resolv_conf(std::string_view text) {
    dns_config out;
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        const auto line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.starts_with('#') || line.starts_with(';')) continue;
        auto fields = words(line);
        if (fields.empty()) continue;
        const auto keyword = fields.front();
        fields.erase(fields.begin());
        if (keyword == "nameserver" && !fields.empty()) {
            add_new(out.servers, {fields[0]});
        } else if (keyword == "search") {
            out.searches.clear();
            for (auto& name : fields) {
                if (name != "." && name.ends_with('.')) name.pop_back();
                if (name != ".") add_new(out.searches, {name});
            }
        } else if (keyword == "options") {
            out.options = std::move(fields);
        }
    }
    return out;
}

bool only_loopback(const dns_config& config) {
    return !config.servers.empty() && std::all_of(config.servers.begin(), config.servers.end(), [](const auto& s) {
        return s.starts_with("127.") || s == "::1";
    });
}

pod_dns make_dns(const model::pod& pod, const dns_facts& facts) {
    const auto& spec = pod.spec;
    pod_dns out;
    if (spec.dns_policy != "None") {
        out.config = facts.node;
        if (is_cluster_first(spec)) {
            out.missing_cluster_dns = facts.cluster_servers.empty();
            if (!out.missing_cluster_dns) {
                out.config = {.servers = facts.cluster_servers, .searches = {}, .options = {"ndots:5"}};
                if (!facts.cluster_domain.empty())
                    out.config.searches = {pod.metadata.namespace_ + ".svc." + facts.cluster_domain,
                                           "svc." + facts.cluster_domain, facts.cluster_domain};
                add_new(out.config.searches, facts.node.searches);
            }
        }
    }
    if (spec.dns_config) merge(out.config, *spec.dns_config);
    out.cut = trim(out.config);
    return out;
}

} // namespace gantry::core
