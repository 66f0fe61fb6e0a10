// Plugin libraries as bytes, made for tests.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/abi/plugin.h"

namespace gantry::core {

struct made_note {
    std::string json{};
    std::uint16_t abi_major = GANTRY_ABI_MAJOR;
    std::uint16_t needs_minor = 0;
    std::string name{"gantry"};
    std::uint32_t type = GANTRY_NOTE_TYPE;
};

template <class T>
std::string bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline std::string padded_to_4(std::string text) {
    text.resize((text.size() + 3) / 4 * 4);
    return text;
}

/// A shared library that holds nothing but the notes, in one PT_NOTE segment.
inline std::string make_elf(const std::vector<made_note>& notes) {
    std::string segment;
    for (const auto& note : notes) {
        const gantry_note_header header{.abi_major = note.abi_major,
                                        .abi_minor = 0,
                                        .needs_minor = note.needs_minor,
                                        .reserved = 0,
                                        .json_size = static_cast<std::uint32_t>(note.json.size())};
        const auto descriptor = bytes_of(header) + note.json;
        const Elf64_Nhdr head{.n_namesz = static_cast<Elf64_Word>(note.name.size() + 1),
                              .n_descsz = static_cast<Elf64_Word>(descriptor.size()),
                              .n_type = note.type};
        segment += bytes_of(head) + padded_to_4(note.name + '\0') + padded_to_4(descriptor);
    }
    Elf64_Ehdr elf{};
    std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
    elf.e_ident[EI_CLASS] = ELFCLASS64;
    elf.e_ident[EI_DATA] = ELFDATA2LSB;
    elf.e_type = ET_DYN;
    elf.e_phoff = sizeof elf;
    elf.e_phentsize = sizeof(Elf64_Phdr);
    elf.e_phnum = 1;
    Elf64_Phdr program{};
    program.p_type = PT_NOTE;
    program.p_offset = sizeof elf + sizeof program;
    program.p_filesz = segment.size();
    program.p_align = 4;
    return bytes_of(elf) + bytes_of(program) + segment;
}

inline made_note good_note(const std::string& name = "net") {
    return {.json = R"({"id": "com.acme.)" + name + R"(", "name": ")" + name + R"(", "version": "1.2.3", "capabilities": ["gantry.network/1-draft"]})"};
}

} // namespace gantry::core
