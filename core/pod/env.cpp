#include "core/pod/env.hpp"

#include <algorithm>

#include "core/pod/resources.hpp"

namespace gantry::core {

namespace {

std::string* find(env_list& env, std::string_view name) {
    const auto it = std::find_if(env.begin(), env.end(), [&](const auto& v) { return v.first == name; });
    return it == env.end() ? nullptr : &it->second;
}

const std::string* find(const env_list& env, std::string_view name) { return find(const_cast<env_list&>(env), name); }

std::string joined(const std::vector<std::string>& list) {
    std::string out;
    for (const auto& item : list) out += (out.empty() ? "" : ",") + item;
    return out;
}

std::string keyed(const model::string_map& map, std::string_view path) {
    const auto start = path.find('\'') + 1;
    const auto it = map.find(std::string(path.substr(start, path.size() - start - 2)));
    return it == map.end() ? std::string() : it->second;
}

result<std::string> field_value(const model::pod& pod, const std::string& path, const env_facts& facts) {
    const auto& meta = pod.metadata;
    const auto first = [](const std::vector<std::string>& list) { return list.empty() ? std::string() : list[0]; };
    if (path == "metadata.name") return meta.name;
    if (path == "metadata.namespace") return meta.namespace_;
    if (path == "metadata.uid") return meta.uid;
    if (path.starts_with("metadata.labels['")) return keyed(meta.labels, path);
    if (path.starts_with("metadata.annotations['")) return keyed(meta.annotations, path);
    if (path == "spec.nodeName") return facts.node_name;
    if (path == "spec.serviceAccountName") return pod.spec.service_account_name;
    if (path == "status.hostIP") return first(facts.host_ips);
    if (path == "status.hostIPs") return joined(facts.host_ips);
    if (path == "status.podIP") return first(facts.pod_ips);
    if (path == "status.podIPs") return joined(facts.pod_ips);
    return error{.code = code::invalid, .message = "unsupported fieldPath: " + path};
}

result<std::string> resource_value(const model::pod& pod, const model::container& self,
                                   const model::resource_field_selector& ref, const env_facts& facts) {
    const model::container* target = ref.container_name.empty() ? &self : nullptr;
    for (const auto* list : {&pod.spec.containers, &pod.spec.init_containers})
        for (const auto& c : *list)
            if (c.name == ref.container_name) target = &c;
    if (target == nullptr)
        return error{.code = code::invalid, .message = "container " + ref.container_name + " not found"};

    const auto dot = ref.resource.find('.');
    const auto name = ref.resource.substr(dot + 1);
    model::quantity value;
    if (ref.resource.starts_with("limits.")) {
        if (target->resources) value = amount(target->resources->limits, name);
        if (value.is_zero() && pod.spec.resources) value = amount(pod.spec.resources->limits, name);
        if (value.is_zero()) value = amount(facts.allocatable, name);
    } else if (target->resources) {
        value = amount(target->resources->requests, name);
    }
    auto divisor = ref.divisor.value_or(model::quantity());
    if (divisor.is_zero()) divisor = model::quantity::of_units(1);
    return std::to_string(value.divided_by(divisor));
}

} // namespace

std::string expand(std::string_view text, const std::function<const std::string*(std::string_view name)>& lookup) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '$' || i + 1 == text.size()) {
            out += text[i];
            continue;
        }
        const char next = text[++i];
        if (next == '$') {
            out += '$';
            continue;
        }
        const auto end = next == '(' ? text.find(')', i) : std::string_view::npos;
        if (end == std::string_view::npos) {
            out += '$';
            out += next;
            continue;
        }
        const auto name = text.substr(i + 1, end - i - 1);
        if (const auto* value = lookup(name))
            out += *value;
        else
            out += "$(" + std::string(name) + ")";
        i = end;
    }
    return out;
}

result<env_list> make_env(const model::pod& pod, const model::container& c, const env_facts& facts) {
    env_list env;
    for (const auto& var : c.env) {
        std::string value;
        if (var.value_from && var.value_from->field_ref) {
            GANTRY_TRY(value, field_value(pod, var.value_from->field_ref->field_path, facts));
        } else if (var.value_from && var.value_from->resource_field_ref) {
            GANTRY_TRY(value, resource_value(pod, c, *var.value_from->resource_field_ref, facts));
        } else {
            value = expand(var.value, [&](std::string_view name) { return find(std::as_const(env), name); });
        }
        if (auto* known = find(env, var.name))
            *known = std::move(value);
        else
            env.emplace_back(var.name, std::move(value));
    }
    return env;
}

std::vector<std::string> expand_all(const std::vector<std::string>& items, const env_list& env) {
    std::vector<std::string> out;
    out.reserve(items.size());
    for (const auto& item : items)
        out.push_back(expand(item, [&](std::string_view name) { return find(env, name); }));
    return out;
}

} // namespace gantry::core
