#include "core/config/bind.hpp"

#include <algorithm>
#include <set>

#include "core/config/suggest.hpp"

namespace gantry::core {

namespace {

constexpr bind_key keys[] = {
    {"runtime", "gantry.runtime", "/1-draft"},
    {"network", "gantry.network", "/1-draft"},
    {"resources", "gantry.resources", "/1-draft"},
    {"proxy", "gantry.proxy", "/1-draft"},
    {"imageGC", "gantry.image-gc", "/1-draft"},
    {"probe", "gantry.probe", "/1-draft"},
    {"podSources", "gantry.pod-source", "/1-draft", true},
    {"volumes", "gantry.volume", "/1-draft", true},
    {"csi", "gantry.csi", "/1-draft", true},
    {"objects", "gantry.objects", "/1-draft", true},
    {"statusSinks", "gantry.status-sink", "/1-draft", true},
    {"admin", "gantry.admin", "/1-draft", true},
};

std::string_view base_of(std::string_view id) { return id.substr(0, id.rfind('/')); }

std::string id_of(const bind_key& key) { return std::string(key.capability) + std::string(key.revision); }

bool contains(const std::vector<std::string>& list, std::string_view item) {
    return std::find(list.begin(), list.end(), item) != list.end();
}

class resolver {
public:
    resolver(const bind_settings& bind, const std::vector<plugin_offer>& offers, fault_list& faults)
        : bind_(bind), offers_(offers), faults_(faults) {}

    bindings run() {
        bind_runtime();
        for (const auto& key : keys)
            if (key.name != "runtime") bind_one(key);
        bind_vendors();
        check_network();
        check_runtime_is_there();
        check_peers();
        find_unused();
        return std::move(out_);
    }

private:
    const plugin_offer* named(std::string_view name) const {
        for (const auto& offer : offers_)
            if (offer.name == name) return &offer;
        return nullptr;
    }

    std::vector<std::string> offering(std::string_view id) const {
        std::vector<std::string> names;
        for (const auto& offer : offers_)
            if (contains(offer.capabilities, id)) names.push_back(offer.name);
        return names;
    }

    /// True when `name` is an instance that offers `id`; else a fault at `path`.
    bool usable(const std::string& path, const std::string& name, const std::string& id) {
        const auto* offer = named(name);
        const auto candidates = offering(id);
        const std::string remedy = candidates.empty() ? "no plugin of this node offers it" : "allowed " + join(candidates);
        if (!offer) {
            std::vector<std::string> all;
            for (const auto& one : offers_) all.push_back(one.name);
            faults_.add(path, "value \"" + name + "\" is not the name of a plugin, " + remedy + did_you_mean(name, all));
            return false;
        }
        if (contains(offer->capabilities, id)) return true;
        for (const auto& capability : offer->capabilities) {
            if (base_of(capability) != base_of(id)) continue;
            faults_.add(path, "value \"" + name + "\" offers " + capability + ", this gantry speaks " + id +
                                  ": install a matching version of the plugin");
            return false;
        }
        faults_.add(path, "value \"" + name + "\" does not offer " + id + ", " + remedy);
        return false;
    }

    void ambiguous(const std::string& path, const std::string& id, const std::vector<std::string>& candidates,
                   const std::string& example) {
        faults_.add(path, "missing, " + std::to_string(candidates.size()) + " plugins offer " + id + " (" + join(candidates) +
                              "): choose one, for example \"" + example + "\"");
    }

    void bind_runtime() {
        const auto id = id_of(keys[0]);
        const auto candidates = offering(id);
        auto& bound = out_.instances[id];
        const auto add = [&](const std::string& handler, const std::string& name) {
            out_.handlers[handler] = name;
            if (!contains(bound, name)) bound.push_back(name);
        };
        if (!bind_.runtime_default.empty()) {
            if (usable("bind.runtime.default", bind_.runtime_default, id)) add("", bind_.runtime_default);
        } else if (candidates.size() == 1) {
            add("", candidates[0]);
        } else if (candidates.size() > 1) {
            ambiguous("bind.runtime.default", id, candidates, "bind: {runtime: {default: " + candidates[0] + "}}");
        }
        for (const auto& [handler, name] : bind_.runtime_handlers)
            if (usable("bind.runtime.handlers." + handler, name, id)) add(handler, name);
    }

    void bind_one(const bind_key& key) {
        const auto id = id_of(key);
        const auto candidates = offering(id);
        const auto path = "bind." + std::string(key.name);
        auto& bound = out_.instances[id];
        if (const auto wanted = bind_.instances.find(std::string(key.name)); wanted != bind_.instances.end()) {
            for (std::size_t i = 0; i < wanted->second.size(); ++i) {
                const auto at = key.many ? path + "[" + std::to_string(i) + "]" : path;
                if (usable(at, wanted->second[i], id)) bound.push_back(wanted->second[i]);
            }
        } else if (key.many || candidates.size() == 1) {
            bound = candidates;
        } else if (candidates.size() > 1) {
            ambiguous(path, id, candidates, "bind: {" + std::string(key.name) + ": " + candidates[0] + "}");
        }
    }

    void bind_vendors() {
        for (const auto& [id, name] : bind_.capabilities) {
            const auto path = "bind.capabilities." + id;
            const auto known = std::find_if(std::begin(keys), std::end(keys), [&id = id](const bind_key& key) { return id_of(key) == id; });
            if (known != std::end(keys)) {
                faults_.add(path, "allowed capabilities of vendors: bind this one by the key bind." + std::string(known->name));
            } else if (usable(path, name, id)) {
                out_.instances[id] = {name};
            }
        }
    }

    void check_network() {
        const auto wanted = bind_.instances.find("network");
        const auto& runtimes = out_.instances[id_of(keys[0])];
        if (wanted == bind_.instances.end() || runtimes.empty()) return;
        for (const auto& name : runtimes)
            if (!named(name)->owns_network) return;
        faults_.add("bind.network", "value \"" + wanted->second.front() + "\", allowed only beside a runtime that leaves the network "
                                    "to the node, " + join(runtimes) + (runtimes.size() == 1 ? " owns" : " own") +
                                    " the network of its pods: remove bind.network");
    }

    void check_runtime_is_there() {
        const auto sources = offering("gantry.pod-source/1-draft");
        if (sources.empty() || !offering(id_of(keys[0])).empty() || !bind_.runtime_default.empty()) return;
        faults_.add("plugins", "no plugin offers " + id_of(keys[0]) + ", which the pods of " + join(sources) +
                                   " need: add one, for example {name: native, use: cri-native}");
    }

    void check_peers() {
        for (std::size_t i = 0; i < offers_.size(); ++i)
            for (const auto& peer : offers_[i].peers) check_peer("plugins[" + std::to_string(i) + "]", offers_[i].name, peer);
    }

    void check_peer(const std::string& path, const std::string& self, const std::string& id) {
        auto candidates = offering(id);
        std::erase(candidates, self);
        const auto bound = out_.instances.find(id);
        if (bound != out_.instances.end() && !bound->second.empty()) return;
        if (candidates.size() == 1) {
            out_.instances[id] = candidates;
        } else if (candidates.empty()) {
            std::string near;
            for (const auto& offer : offers_)
                for (const auto& capability : offer.capabilities)
                    if (base_of(capability) == base_of(id)) near = ", \"" + offer.name + "\" offers " + capability + " instead";
            faults_.add(path, "\"" + self + "\" requires " + id + " and no other plugin offers it" + near + ": add one under plugins");
        } else if (!known(id)) { // a known one is reported under its own key
            ambiguous("bind.capabilities." + id, id, candidates, "bind: {capabilities: {" + id + ": " + candidates[0] + "}}");
        }
    }

    static bool known(std::string_view id) {
        return std::any_of(std::begin(keys), std::end(keys), [&](const bind_key& key) { return id_of(key) == id; });
    }

    void find_unused() {
        std::set<std::string> used;
        for (const auto& [id, names] : out_.instances) used.insert(names.begin(), names.end());
        for (const auto& offer : offers_) {
            if (offer.capabilities.empty() || used.contains(offer.name)) continue;
            out_.warnings.push_back("plugin \"" + offer.name + "\" is loaded and nothing uses it: bind one of " +
                                    join(offer.capabilities) + " to it, or remove it");
        }
    }

    const bind_settings& bind_;
    const std::vector<plugin_offer>& offers_;
    fault_list& faults_;
    bindings out_;
};

} // namespace

std::span<const bind_key> bind_keys() { return keys; }

bindings resolve_bindings(const bind_settings& bind, const std::vector<plugin_offer>& offers, fault_list& faults) {
    return resolver(bind, offers, faults).run();
}

} // namespace gantry::core
