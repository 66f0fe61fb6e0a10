#include "plugins/source-file/catalogue.hpp"

#include "base/json.hpp"

namespace gantry::source_file {

namespace {

namespace json = base::json;

std::string removal(const std::string& uid, const std::string& namespace_, const std::string& name) {
    return base::to_text(
        {{"type", "REMOVE"}, {"pod", {{"metadata", {{"namespace", namespace_}, {"name", name}, {"uid", uid}}}}}});
}

std::string fault_item(const std::string& path, const std::string& message) {
    return base::to_text({{"type", "FAULT"}, {"object", path}, {"message", message}});
}

void append(std::string& to, const std::string& what) { to += (to.empty() ? "" : "; ") + what; }

} // namespace

void catalogue::set(const std::string& path, std::vector<static_pod> pods) {
    files_[path] = {.pods = std::move(pods), .why = {}};
}

void catalogue::refuse(const std::string& path, std::string why) { files_[path].why = std::move(why); }

void catalogue::forget(const std::string& path) { files_.erase(path); }

std::vector<std::string> catalogue::paths() const {
    std::vector<std::string> out;
    for (const auto& [path, file] : files_) out.push_back(path);
    return out;
}

std::vector<std::string> catalogue::changes() {
    struct claim {
        const static_pod* pod;
        const std::string* path;
    };
    std::map<std::string, claim> by_uid;
    std::map<std::string, const std::string*> by_name;
    std::vector<const static_pod*> in_order;
    std::map<std::string, std::string> faults;
    for (const auto& [path, file] : files_) {
        if (!file.why.empty()) append(faults[path], file.why);
        for (const auto& pod : file.pods) {
            const std::string name = pod.namespace_ + "/" + pod.name;
            const auto named = by_name.find(name);
            const auto known = by_uid.find(pod.uid);
            if (named != by_name.end() || known != by_uid.end()) {
                append(faults[path],
                       path + ": pod " + name + (named != by_name.end() ? "" : " (by its UID " + pod.uid + ")") +
                           " is also in " + *(named != by_name.end() ? named->second : known->second.path) +
                           ", which wins; remove one of them");
                continue;
            }
            by_name.emplace(name, &path);
            by_uid.emplace(pod.uid, claim{&pod, &path});
            in_order.push_back(&pod);
        }
    }

    std::vector<std::string> items;
    for (auto at = announced_.begin(); at != announced_.end();) {
        if (by_uid.contains(at->first)) {
            ++at;
            continue;
        }
        items.push_back(removal(at->first, at->second.namespace_, at->second.name));
        at = announced_.erase(at);
    }
    for (const auto* pod : in_order) {
        const auto [at, fresh] =
            announced_.try_emplace(pod->uid, announced_pod{pod->namespace_, pod->name, pod->digest});
        if (!fresh && at->second.digest == pod->digest) continue;
        at->second = {pod->namespace_, pod->name, pod->digest};
        items.push_back(std::string(R"({"type":")") + (fresh ? "ADD" : "UPDATE") + R"(","pod":)" + pod->json + "}");
    }
    for (const auto& [path, message] : told_faults_)
        if (!faults.contains(path)) items.push_back(fault_item(path, ""));
    for (const auto& [path, message] : faults)
        if (const auto told = told_faults_.find(path); told == told_faults_.end() || told->second != message)
            items.push_back(fault_item(path, message));
    told_faults_ = std::move(faults);
    return items;
}

} // namespace gantry::source_file
