#include "core/pod/names.hpp"

#include <charconv>

namespace gantry::core {

namespace {

/// FNV-1a with a separator after each part.
class hasher {
public:
    hasher& add(std::string_view part) {
        for (const char c : part) step(static_cast<unsigned char>(c));
        step(0xff);
        return *this;
    }
    std::uint64_t value() const { return value_; }

private:
    void step(unsigned byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
    std::uint64_t value_ = 0xcbf29ce484222325;
};

} // namespace

std::string pod_title(const model::object_meta& meta) { return meta.name + "_" + meta.namespace_ + "(" + meta.uid + ")"; }
std::string pod_key(const model::object_meta& meta) { return meta.namespace_ + "/" + meta.name; }
std::string pod_log_dir(const model::object_meta& meta) { return meta.namespace_ + "_" + meta.name + "_" + meta.uid; }

std::uint64_t container_hash(const model::container& c) { return hasher().add(c.name).add(c.image).value(); }

std::uint64_t restart_hash(const model::container& c) {
    hasher h;
    h.add(c.image);
    if (c.resources)
        for (const auto* list : {&c.resources->limits, &c.resources->requests}) {
            for (const auto& [name, amount] : *list) h.add(name).add(amount.to_string());
            h.add("");
        }
    return h.value();
}

std::string to_hex(std::uint64_t value) {
    char text[16];
    const auto end = std::to_chars(text, text + sizeof(text), value, 16).ptr;
    return {text, end};
}

std::uint64_t from_hex(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return ec == std::errc() && end == text.data() + text.size() ? value : 0;
}

} // namespace gantry::core
