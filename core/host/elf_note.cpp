#include "core/host/elf_note.hpp"

#include <elf.h>

#include <cstring>
#include <optional>

#include "gantry/abi/plugin.h"

namespace gantry::core {

namespace {

constexpr std::size_t most_notes = 64;
constexpr std::size_t most_segments = 64;

error not_a_plugin(const std::string& file, std::string_view why) {
    return {.code = code::invalid, .message = file + " is not a gantry plugin: " + std::string(why)};
}

/// A T at `offset`, if the bytes reach that far.
template <class T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

std::optional<std::string_view> slice(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
    if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
    return bytes.substr(offset, size);
}

std::uint64_t padded(std::uint64_t size, std::uint64_t alignment) { return (size + alignment - 1) / alignment * alignment; }

result<plugin_note> parse_note(std::string_view descriptor, const std::string& file) {
    const auto header = read_at<gantry_note_header>(descriptor, 0);
    if (!header) return not_a_plugin(file, "its descriptor note is cut short");
    const auto json = slice(descriptor, sizeof *header, header->json_size);
    if (!json) return not_a_plugin(file, "its descriptor note is shorter than the JSON it announces");
    return plugin_note{.abi_major = header->abi_major,
                       .abi_minor = header->abi_minor,
                       .needs_minor = header->needs_minor,
                       .json = std::string(*json)};
}

result<void> walk_segment(std::string_view segment, std::uint64_t alignment, const std::string& file, std::vector<plugin_note>& out) {
    std::uint64_t at = 0;
    while (const auto header = read_at<Elf64_Nhdr>(segment, at)) {
        const std::uint64_t name_at = at + sizeof *header;
        const std::uint64_t descriptor_at = name_at + padded(header->n_namesz, alignment);
        const auto name = slice(segment, name_at, header->n_namesz);
        const auto descriptor = slice(segment, descriptor_at, header->n_descsz);
        if (!name || !descriptor) return not_a_plugin(file, "a note reaches beyond its segment");
        constexpr std::string_view ours(GANTRY_NOTE_NAME, sizeof GANTRY_NOTE_NAME); // with its final NUL
        if (*name == ours && header->n_type == GANTRY_NOTE_TYPE) {
            if (out.size() == most_notes) return not_a_plugin(file, "it has more than 64 descriptor notes");
            GANTRY_TRY(auto note, parse_note(*descriptor, file));
            out.push_back(std::move(note));
        }
        at = descriptor_at + padded(header->n_descsz, alignment);
    }
    return {};
}

} // namespace

result<std::vector<plugin_note>> read_plugin_notes(std::string_view elf, const std::string& file) {
    const auto header = read_at<Elf64_Ehdr>(elf, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return not_a_plugin(file, "it is not an ELF file");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
        return not_a_plugin(file, "it is not a 64-bit little-endian ELF file");
    if (header->e_type != ET_DYN) return not_a_plugin(file, "it is not a shared library");
    if (header->e_phentsize != sizeof(Elf64_Phdr)) return not_a_plugin(file, "its program headers have an unknown size");

    std::vector<plugin_note> notes;
    std::size_t segments = 0;
    for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
        if (i * sizeof(Elf64_Phdr) > UINT64_MAX - header->e_phoff) return not_a_plugin(file, "its program headers overflow");
        const auto program = read_at<Elf64_Phdr>(elf, header->e_phoff + i * sizeof(Elf64_Phdr));
        if (!program) return not_a_plugin(file, "its program headers reach beyond the end of the file");
        if (program->p_type != PT_NOTE) continue;
        if (++segments > most_segments) return not_a_plugin(file, "it has more than 64 note segments");
        const auto segment = slice(elf, program->p_offset, program->p_filesz);
        if (!segment) return not_a_plugin(file, "a note segment reaches beyond the end of the file");
        GANTRY_CHECK(walk_segment(*segment, program->p_align == 8 ? 8 : 4, file, notes));
    }
    if (notes.empty())
        return not_a_plugin(file, "it has no note \"" GANTRY_NOTE_SECTION "\"; build it with GANTRY_DESCRIPTOR of gantry/abi/plugin.h");
    return notes;
}

} // namespace gantry::core
