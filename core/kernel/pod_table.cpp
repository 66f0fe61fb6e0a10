#include "core/kernel/pod_table.hpp"

#include <algorithm>
#include <tuple>

#include "core/pod/names.hpp"

namespace gantry::core {

namespace {

std::string_view origin(const model::pod& pod) {
    const auto it = pod.metadata.annotations.find("kubernetes.io/config.file");
    return it == pod.metadata.annotations.end() ? std::string_view() : std::string_view(it->second);
}

} // namespace

void pod_table::set(std::size_t source, std::shared_ptr<const model::pod> pod) {
    auto& s = sources_[source];
    const auto uid = pod->metadata.uid;
    s.unmentioned.erase(uid);
    s.pods[uid] = std::move(pod);
}

bool pod_table::erase(std::size_t source, const std::string& uid) {
    sources_[source].unmentioned.erase(uid);
    return sources_[source].pods.erase(uid) > 0;
}

void pod_table::begin_listing(std::size_t source) {
    auto& s = sources_[source];
    s.unmentioned.clear();
    for (const auto& [uid, pod] : s.pods) s.unmentioned.insert(uid);
}

std::vector<std::string> pod_table::end_listing(std::size_t source) {
    auto& s = sources_[source];
    std::vector<std::string> gone(s.unmentioned.begin(), s.unmentioned.end());
    for (const auto& uid : gone) s.pods.erase(uid);
    s.unmentioned.clear();
    return gone;
}

std::shared_ptr<const pod_table::entry> pod_table::find(const std::string& uid) const {
    for (std::size_t i = 0; i < sources_.size(); ++i)
        if (const auto it = sources_[i].pods.find(uid); it != sources_[i].pods.end())
            return std::make_shared<const entry>(entry{it->second, i});
    return nullptr;
}

std::vector<pod_table::entry> pod_table::candidates(const std::string& key) const {
    std::vector<entry> out;
    for (const auto& e : all())
        if (pod_key(e.pod->metadata) == key) out.push_back(e);
    std::sort(out.begin(), out.end(), [](const entry& a, const entry& b) {
        return std::tuple(a.source, origin(*a.pod), std::string_view(a.pod->metadata.uid)) <
               std::tuple(b.source, origin(*b.pod), std::string_view(b.pod->metadata.uid));
    });
    return out;
}

std::vector<pod_table::entry> pod_table::all() const {
    std::vector<entry> out;
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < sources_.size(); ++i)
        for (const auto& [uid, pod] : sources_[i].pods)
            if (seen.insert(uid).second) out.push_back({pod, i});
    return out;
}

} // namespace gantry::core
