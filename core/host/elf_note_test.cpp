#include "core/host/elf_note.hpp"

#include <random>

#include <gtest/gtest.h>

#include "core/host/descriptor.hpp"
#include "core/host/elf_fixture.hpp"

namespace gantry::core {
namespace {

std::string failure(const std::string& elf) {
    const auto notes = read_plugin_notes(elf, "x.so");
    return notes ? "no failure" : notes.error().message;
}

TEST(elf_note, reads_every_note_of_a_library) {
    const auto notes = read_plugin_notes(make_elf({{.json = R"({"a":1})"}, {.json = "GNU", .name = "GNU"}, {.json = "{}", .needs_minor = 3}}), "x.so");
    ASSERT_TRUE(notes) << notes.error().message;
    ASSERT_EQ(notes->size(), 2u);
    EXPECT_EQ((*notes)[0].json, R"({"a":1})");
    EXPECT_EQ((*notes)[0].abi_major, GANTRY_ABI_MAJOR);
    EXPECT_EQ((*notes)[1].needs_minor, 3);
}

TEST(elf_note, says_why_a_file_is_no_plugin) {
    EXPECT_EQ(failure(""), "x.so is not a gantry plugin: it is not an ELF file");
    EXPECT_EQ(failure(std::string(100, 'x')), "x.so is not a gantry plugin: it is not an ELF file");
    EXPECT_EQ(failure(make_elf({})), "x.so is not a gantry plugin: it has no note \".note.gantry.plugin\"; build it with "
                                     "GANTRY_DESCRIPTOR of gantry/abi/plugin.h");
    auto program = make_elf({good_note()});
    program[offsetof(Elf64_Ehdr, e_type)] = ET_EXEC;
    EXPECT_EQ(failure(program), "x.so is not a gantry plugin: it is not a shared library");
    auto narrow = make_elf({good_note()});
    narrow[EI_CLASS] = ELFCLASS32;
    EXPECT_EQ(failure(narrow), "x.so is not a gantry plugin: it is not a 64-bit little-endian ELF file");
}

TEST(elf_note, checks_every_bound) {
    const auto whole = make_elf({good_note(), good_note("gc")});
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(read_plugin_notes(whole.substr(0, size), "x.so")) << size;
    auto liar = make_elf({good_note()});
    const std::uint32_t huge = 0xffffffff;
    std::memcpy(liar.data() + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + sizeof(Elf64_Nhdr) + 8 + offsetof(gantry_note_header, json_size), &huge, 4);
    EXPECT_EQ(failure(liar), "x.so is not a gantry plugin: its descriptor note is shorter than the JSON it announces");
    auto far = make_elf({good_note()});
    const std::uint64_t beyond = UINT64_MAX - 8;
    std::memcpy(far.data() + offsetof(Elf64_Ehdr, e_phoff), &beyond, 8);
    EXPECT_FALSE(read_plugin_notes(far, "x.so"));
}

TEST(elf_note, refuses_more_notes_than_anyone_needs) {
    EXPECT_TRUE(read_plugin_notes(make_elf(std::vector<made_note>(64, good_note())), "x.so"));
    EXPECT_EQ(failure(make_elf(std::vector<made_note>(65, good_note()))), "x.so is not a gantry plugin: it has more than 64 descriptor notes");
}

// Bytes of a stranger: whatever they are, the answer is a value or an error. ASan watches the bounds.
TEST(elf_note, survives_mutations) {
    std::mt19937 random(20261130);
    const auto seed = make_elf({good_note(), {.json = R"({"config": {"type": "object"}})"}});
    std::size_t accepted = 0;
    for (int round = 0; round < 20'000; ++round) {
        auto bytes = seed;
        const auto changes = 1 + random() % 8;
        for (unsigned i = 0; i < changes; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
        if (random() % 4 == 0) bytes.resize(random() % bytes.size());
        const auto read = read_descriptors(bytes, "x.so");
        if (read) ++accepted;
        else ASSERT_FALSE(read.error().message.empty());
    }
    EXPECT_LT(accepted, 20'000u);
}

} // namespace
} // namespace gantry::core
