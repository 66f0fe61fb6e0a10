#include "plugins/cri-native/runtime/spec/dns.hpp"

#include <string_view>

namespace gantry::cri_native {

namespace {

void append_list(std::string& text, std::string_view keyword, const std::vector<std::string>& words) {
    if (words.empty()) return;
    text += keyword;
    for (const auto& word : words) text += ' ' + word;
    text += '\n';
}

} // namespace

std::string resolv_conf(const dns_settings& dns) {
    std::string text;
    append_list(text, "search", dns.searches);
    for (const auto& server : dns.servers) text += "nameserver " + server + '\n';
    append_list(text, "options", dns.options);
    return text;
}

std::string hosts_file(const std::string& hostname, const std::vector<std::string>& ips) {
    std::string text = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n"
                       "ff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n";
    for (const auto& ip : ips) text += ip + '\t' + hostname + '\n';
    return text;
}

} // namespace gantry::cri_native
