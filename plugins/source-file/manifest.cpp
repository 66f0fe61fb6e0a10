#include "plugins/source-file/manifest.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/yaml.hpp"
#include "gantry/model/defaults.hpp"
#include "gantry/model/json.hpp"
#include "plugins/source-file/digest.hpp"

namespace gantry::source_file {

namespace {

namespace json = base::json;

constexpr std::string_view hash_key = "kubernetes.io/config.hash";
constexpr std::string_view source_key = "kubernetes.io/config.source";
constexpr std::string_view seen_key = "kubernetes.io/config.seen";

using line_map = std::map<std::string, int>;

/// What is wrong with one object of the file, at a field's path ("spec.containers[0].name").
struct fault {
    std::string field;
    std::string what;
};

/// JSON first: its escapes and its speed are not YAML's. Line numbers only YAML's reader knows.
result<std::vector<base::yaml_document>> read_documents(std::string_view text, std::string_view file) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && text[first] == '{') {
        if (auto value = base::parse_json(text, file)) {
            auto with_lines = base::parse_yaml(text, file);
            const bool same = with_lines && with_lines->size() == 1;
            std::vector<base::yaml_document> one(1);
            if (same) one[0].lines = std::move(with_lines->front().lines);
            one[0].value = *std::move(value);
            return one;
        }
    }
    return base::parse_yaml(text, file);
}

/// The line of the field, or of the nearest thing around it that the file has.
int line_of(const line_map& lines, std::string path) {
    while (!path.empty()) {
        if (const auto found = lines.find(path); found != lines.end()) return found->second;
        const auto cut = path.find_last_of(".[");
        path.resize(cut == std::string::npos ? 0 : cut);
    }
    return lines.empty() ? 1 : std::min_element(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
                                   return a.second < b.second;
                               })->second;
}

/// The member as an object, made when absent; nullptr when it is something else.
json::object* object_at(json::object& parent, std::string_view key) {
    auto& value = parent[key];
    if (value.is_null()) value = json::object();
    return value.if_object();
}

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return out;
}

void tolerate_no_execute(json::object& spec) {
    auto& tolerations = spec["tolerations"];
    if (tolerations.is_null()) tolerations = json::array();
    auto* list = tolerations.if_array();
    if (list == nullptr) return; // validation says so
    const json::value all = {{"operator", "Exists"}, {"effect", "NoExecute"}};
    if (std::find(list->begin(), list->end(), all) == list->end()) list->push_back(all);
}

/// What no static pod may have, since nothing on the node could give it.
std::vector<fault> check_static(const json::object& spec) {
    std::vector<fault> faults;
    if (const auto* claims = spec.if_contains("resourceClaims"); claims != nullptr && !claims->is_null())
        faults.push_back({"spec.resourceClaims", "static pods cannot have resource claims"});
    const auto* volumes = spec.if_contains("volumes");
    if (volumes == nullptr || !volumes->is_array()) return faults;
    for (std::size_t i = 0; i < volumes->get_array().size(); ++i) {
        const auto* volume = volumes->get_array()[i].if_object();
        const auto* projected = volume != nullptr ? volume->if_contains("projected") : nullptr;
        const auto* sources =
            projected != nullptr && projected->is_object() ? projected->get_object().if_contains("sources") : nullptr;
        if (sources == nullptr || !sources->is_array()) continue;
        for (const auto& source : sources->get_array())
            if (source.is_object() && source.get_object().contains("clusterTrustBundle"))
                faults.push_back(
                    {"spec.volumes[" + std::to_string(i) + "]", "static pods cannot project cluster trust bundles"});
    }
    return faults;
}

/// One Pod object to a static pod; faults are added when it is none.
static_pod make_static(const json::value& manifest, std::string_view file, std::string_view node_name,
                       base::wall_time seen, std::vector<fault>& faults) {
    static_pod out;
    out.digest = static_pod_uid(manifest, file, node_name);
    json::object pod = manifest.get_object();
    // A pointer into an object holds until the object gets a new member: the outer ones come first.
    pod["status"] = json::object{{"phase", "Pending"}};
    for (const auto* member : {"metadata", "spec"}) (void)object_at(pod, member);
    auto* metadata = object_at(pod, "metadata");
    auto* spec = object_at(pod, "spec");
    if (metadata == nullptr || spec == nullptr) {
        faults.push_back({metadata == nullptr ? "metadata" : "spec", "must be an object"});
        return out;
    }
    const std::string name = base::string_at(*metadata, "name");
    if (name.empty()) faults.push_back({"metadata.name", "a static pod needs a name"});
    out.uid = base::string_at(*metadata, "uid");
    if (out.uid.empty()) out.uid = out.digest;
    out.namespace_ = base::string_at(*metadata, "namespace");
    if (out.namespace_.empty()) out.namespace_ = "default";
    out.name = name + "-" + lower(node_name);

    (*metadata)["name"] = out.name;
    (*metadata)["namespace"] = out.namespace_;
    (*metadata)["uid"] = out.uid;
    auto* annotations = object_at(*metadata, "annotations");
    if (annotations == nullptr) {
        faults.push_back({"metadata.annotations", "must be an object"});
        return out;
    }
    (*annotations)[hash_key] = out.uid;
    (*annotations)[source_key] = "file";
    (*annotations)[seen_key] = base::format_rfc3339(seen, 9);
    (*spec)["nodeName"] = node_name;
    tolerate_no_execute(*spec);

    auto more = check_static(*spec);
    faults.insert(faults.end(), more.begin(), more.end());
    model::field_errors errors;
    const json::value whole(std::move(pod));
    auto typed = model::pod_from_json(whole, errors);
    model::set_defaults(typed);
    for (auto& e : model::validate(typed)) errors.push_back(std::move(e));
    for (const auto& e : errors) faults.push_back({e.field, e.to_string()});
    out.json = base::to_text(whole);
    return out;
}

class reader {
public:
    reader(std::string_view file, std::string_view node_name, base::wall_time seen)
        : file_(file), node_name_(node_name), seen_(seen) {}

    result<void> document(const base::yaml_document& document) {
        if (document.value.is_null()) return {};
        return object(document.value, document.lines, "");
    }
    std::vector<static_pod> take() { return std::move(pods_); }

private:
    error refuse(const line_map& lines, const std::string& path, const std::string& what) const {
        return {.code = code::invalid,
                .message = std::string(file_) + ":" + std::to_string(line_of(lines, path)) + ": " + what};
    }

    result<void> object(const json::value& value, const line_map& lines, const std::string& prefix) {
        const auto at = [&](std::string_view field) {
            return prefix.empty() || field.empty() ? prefix + std::string(field) : prefix + "." + std::string(field);
        };
        const auto* root = value.if_object();
        if (root == nullptr) return refuse(lines, prefix, "not an object of kind Pod");
        const std::string kind = base::string_at(*root, "kind");
        if (const std::string version = base::string_at(*root, "apiVersion"); version != "v1")
            return refuse(lines, at("apiVersion"),
                          "apiVersion \"" + version + "\" of kind \"" + kind + "\": only v1 is read here");
        if (kind == "List" || kind == "PodList") return items(*root, lines, prefix);
        if (kind != "Pod")
            return refuse(lines, at("kind"), "kind \"" + kind + "\": only Pod, PodList and List are read here");

        std::vector<fault> faults;
        auto pod = make_static(value, file_, node_name_, seen_, faults);
        if (!faults.empty()) {
            std::string all = faults.front().what;
            for (std::size_t i = 1; i < faults.size(); ++i) all += "; " + faults[i].what;
            return refuse(lines, at(faults.front().field), all);
        }
        if (!names_.insert(pod.namespace_ + "/" + pod.name).second || !uids_.insert(pod.uid).second)
            return refuse(lines, at("metadata.name"),
                          "pod " + pod.namespace_ + "/" + pod.name + " is in this file twice");
        pods_.push_back(std::move(pod));
        return {};
    }

    result<void> items(const json::object& list, const line_map& lines, const std::string& prefix) {
        const auto* entries = list.if_contains("items");
        if (entries == nullptr || !entries->is_array() || !prefix.empty())
            return refuse(lines, prefix, "a list has items, which are Pods");
        for (std::size_t i = 0; i < entries->get_array().size(); ++i)
            GANTRY_CHECK(object(entries->get_array()[i], lines, "items[" + std::to_string(i) + "]"));
        return {};
    }

    std::string_view file_;
    std::string_view node_name_;
    base::wall_time seen_;
    std::vector<static_pod> pods_;
    std::set<std::string> names_, uids_;
};

} // namespace

result<std::vector<static_pod>> read_manifest(std::string_view text, std::string_view file, std::string_view node_name,
                                              base::wall_time seen) {
    GANTRY_TRY(const auto documents, read_documents(text, file));
    reader all(file, node_name, seen);
    for (const auto& document : documents) GANTRY_CHECK(all.document(document));
    return all.take();
}

std::string static_pod_uid(const json::value& manifest, std::string_view file, std::string_view node_name) {
    fnv128 hash;
    hash.add_value(manifest);
    hash.add("host:" + std::string(node_name));
    hash.add("file:" + std::string(file));
    return hash.hex();
}

} // namespace gantry::source_file
