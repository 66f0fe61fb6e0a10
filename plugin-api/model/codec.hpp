// JSON by reflection: one reader and one writer for every described struct.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <type_traits>

#include <boost/describe/members.hpp>
#include <boost/json.hpp>
#include <boost/mp11/algorithm.hpp>

#include "gantry/model/errors.hpp"
#include "gantry/model/meta.hpp"

namespace gantry::model::codec {

namespace json = boost::json;

template <class T>
concept described = boost::describe::has_describe_members<T>::value;

/// host_ip -> hostIP, namespace_ -> namespace, run_as_non_root -> runAsNonRoot.
std::string json_key(std::string_view member);

template <described T>
using members_of = boost::describe::describe_members<T, boost::describe::mod_public>;

template <described T>
const auto& keys_of() {
    static const auto keys = [] {
        std::array<std::string, boost::mp11::mp_size<members_of<T>>::value> out;
        std::size_t i = 0;
        boost::mp11::mp_for_each<members_of<T>>([&](auto d) { out[i++] = json_key(d.name); });
        return out;
    }();
    return keys;
}

/// Reads values and remembers where it is, so that errors carry their path.
class reader {
public:
    explicit reader(field_errors& errors) : errors_(errors) {}

    template <described T>
    void read(const json::value& in, T& out) {
        const auto* object = in.if_object();
        if (object == nullptr) return wrong(in, "must be an object");
        std::size_t used = 0;
        std::size_t index = 0;
        boost::mp11::mp_for_each<members_of<T>>([&](auto d) {
            const std::string& key = keys_of<T>()[index++];
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(out.*d.pointer)>, unknown_fields>) {
                return; // after all others
            } else if (const auto* value = object->if_contains(key)) {
                ++used;
                if (value->is_null()) return;
                within("." + key, [&] { read(*value, out.*d.pointer); });
            }
        });
        if constexpr (requires { out.unknown; })
            if (used != object->size()) keep_unknown(*object, keys_of<T>(), out.unknown);
    }

    void read(const json::value& in, std::string& out);
    void read(const json::value& in, bool& out);
    void read(const json::value& in, std::int64_t& out);
    void read(const json::value& in, std::int32_t& out);
    void read(const json::value& in, quantity& out);
    void read(const json::value& in, raw_json& out);

    template <class T>
    void read(const json::value& in, always<T>& out) { read(in, out.value); }

    template <class T>
    void read(const json::value& in, std::optional<T>& out) { read(in, out.emplace()); }

    template <class T>
    void read(const json::value& in, box<T>& out) { read(in, out.ensure()); }

    template <class T>
    void read(const json::value& in, std::vector<T>& out) {
        const auto* array = in.if_array();
        if (array == nullptr) return wrong(in, "must be a list");
        out.reserve(array->size());
        for (std::size_t i = 0; i < array->size(); ++i)
            within("[" + std::to_string(i) + "]", [&] { read((*array)[i], out.emplace_back()); });
    }

    template <class T>
    void read(const json::value& in, std::map<std::string, T>& out) {
        const auto* object = in.if_object();
        if (object == nullptr) return wrong(in, "must be an object");
        for (const auto& [key, value] : *object) {
            const std::string name(key);
            const bool plain = name.find_first_of("./[]") == std::string::npos;
            within(plain ? "." + name : "[" + name + "]", [&, &item = value] { read(item, out[name]); });
        }
    }

private:
    template <class F>
    void within(const std::string& step, F f) {
        const auto size = path_.size();
        path_ += path_.empty() && step[0] == '.' ? step.substr(1) : step;
        f();
        path_.resize(size);
    }
    template <std::size_t N>
    void keep_unknown(const json::object& object, const std::array<std::string, N>& keys, unknown_fields& out) {
        json::object rest;
        for (const auto& [key, value] : object) {
            bool known = false;
            for (const auto& k : keys) known = known || (k == key && k != "unknown");
            if (!known) rest[key] = value;
        }
        if (!rest.empty()) out = json::serialize(rest);
    }
    void wrong(const json::value& in, std::string_view detail);

    field_errors& errors_;
    std::string path_;
};

json::value write(const std::string& in);
json::value write(const quantity& in);
json::value write(const raw_json& in);
inline json::value write(bool in) { return in; }
inline json::value write(std::int64_t in) { return in; }
inline json::value write(std::int32_t in) { return in; }
template <described T>
json::value write(const T& in);
template <class T>
json::value write(const std::vector<T>& in);
template <class T>
json::value write(const std::map<std::string, T>& in);

inline bool empty(const std::string& in) { return in.empty(); }
inline bool empty(bool in) { return !in; }
inline bool empty(std::int64_t in) { return in == 0; }
inline bool empty(std::int32_t in) { return in == 0; }
inline bool empty(const raw_json& in) { return !in; }
template <class T>
bool empty(const std::vector<T>& in) { return in.empty(); }
template <class T>
bool empty(const std::map<std::string, T>& in) { return in.empty(); }

template <class T>
void put(json::object& out, const std::string& key, const T& in) {
    if constexpr (described<T>) {
        auto value = write(in);
        if (!value.get_object().empty()) out[key] = std::move(value);
    } else if (!empty(in)) {
        out[key] = write(in);
    }
}
template <class T>
void put(json::object& out, const std::string& key, const always<T>& in) { out[key] = write(in.value); }
template <class T>
void put(json::object& out, const std::string& key, const std::optional<T>& in) {
    if (in) out[key] = write(*in);
}
template <class T>
void put(json::object& out, const std::string& key, const box<T>& in) {
    if (in) out[key] = write(*in);
}

/// Adds the members that the reader did not know.
void put_unknown(json::object& out, const unknown_fields& in);

template <described T>
json::value write(const T& in) {
    json::object out;
    std::size_t index = 0;
    boost::mp11::mp_for_each<members_of<T>>([&](auto d) {
        const std::string& key = keys_of<T>()[index++];
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(in.*d.pointer)>, unknown_fields>)
            put_unknown(out, in.*d.pointer);
        else
            put(out, key, in.*d.pointer);
    });
    return out;
}

template <class T>
json::value write(const std::vector<T>& in) {
    json::array out;
    for (const auto& item : in) out.push_back(write(item));
    return out;
}

template <class T>
json::value write(const std::map<std::string, T>& in) {
    json::object out;
    for (const auto& [key, value] : in) out[key] = write(value);
    return out;
}

} // namespace gantry::model::codec
