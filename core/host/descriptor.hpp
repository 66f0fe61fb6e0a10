// What a plugin says about itself, read from its note: gantry/abi/plugin.h lists the members.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "core/host/elf_note.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

struct descriptor {
    std::uint16_t abi_major = 0;
    std::uint16_t abi_minor = 0;
    std::uint16_t needs_minor = 0;
    std::string id{};      ///< reverse-DNS name
    std::string name{};    ///< what NodeConfig's `use:` takes
    std::string version{};
    std::string vendor{}, license{}, url{}, description{};
    std::vector<std::string> capabilities{};
    std::vector<std::string> peers{};    ///< member "requires"
    std::vector<std::string> services{}; ///< host services it cannot work without
    std::vector<std::string> traits{};   ///< "owns-network": known before loading what its table's flags say later
    std::map<std::string, std::vector<std::string>> operations{}; ///< of a vendor's own capabilities, in table order
    int max_concurrency = 64;
    base::json::object config{};         ///< JSON Schema, see core/config/schema.hpp
    std::string json{};                  ///< the note's text

    bool has_trait(std::string_view trait) const;
};

/// Parses and judges one note; refuses another ABI major and a minor that this host does not have. Errors name `file`, the
/// plugin, both versions and the next step.
result<descriptor> parse_descriptor(const plugin_note& note, const std::string& file);

/// All descriptors of a library's bytes; two of the same id or name are an error.
result<std::vector<descriptor>> read_descriptors(std::string_view elf, const std::string& file);

/// For `gantry plugin inspect FILE`: [{"abi": {...}, "file", "sha256", ...the note's members}], whatever ABI it is of. Runs no
/// code of the library.
result<base::json::value> inspect_plugin(const std::string& file);

/// Service ids that this host offers.
const std::vector<std::string>& host_service_ids();

} // namespace gantry::core
