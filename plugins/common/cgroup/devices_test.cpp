#include "plugins/common/cgroup/devices.hpp"

#include <gtest/gtest.h>

#include <linux/bpf.h>

#include <bit>

namespace gantry::cgroup {

namespace {

/// What the kernel's interpreter does with the few instructions that device programs are made of.
bool run(const std::vector<std::uint64_t>& program, char type, std::uint32_t major, std::uint32_t minor,
         std::uint32_t access) {
    const std::uint32_t kind = type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
    const std::uint32_t context[3] = {access << 16 | kind, major, minor};
    std::uint64_t reg[11] = {};
    for (std::size_t pc = 0; pc < program.size(); ++pc) {
        const auto i = std::bit_cast<bpf_insn>(program[pc]);
        const auto imm = static_cast<std::uint64_t>(static_cast<std::int64_t>(i.imm));
        switch (i.code) {
        case BPF_LDX | BPF_MEM | BPF_W: reg[i.dst_reg] = context[i.off / 4]; break;
        case BPF_ALU | BPF_AND | BPF_K: reg[i.dst_reg] = static_cast<std::uint32_t>(reg[i.dst_reg] & imm); break;
        case BPF_ALU | BPF_RSH | BPF_K: reg[i.dst_reg] = static_cast<std::uint32_t>(reg[i.dst_reg]) >> i.imm; break;
        case BPF_ALU | BPF_MOV | BPF_X: reg[i.dst_reg] = static_cast<std::uint32_t>(reg[i.src_reg]); break;
        case BPF_ALU64 | BPF_MOV | BPF_K: reg[i.dst_reg] = imm; break;
        case BPF_JMP | BPF_JNE | BPF_K: pc += reg[i.dst_reg] != imm ? static_cast<std::size_t>(i.off) : 0; break;
        case BPF_JMP | BPF_JEQ | BPF_K: pc += reg[i.dst_reg] == imm ? static_cast<std::size_t>(i.off) : 0; break;
        case BPF_JMP | BPF_EXIT: return reg[0] == 1;
        default: ADD_FAILURE() << "unexpected opcode " << int(i.code); return false;
        }
    }
    ADD_FAILURE() << "ran past the end";
    return false;
}

constexpr std::uint32_t m = BPF_DEVCG_ACC_MKNOD, r = BPF_DEVCG_ACC_READ, w = BPF_DEVCG_ACC_WRITE;

} // namespace

TEST(cgroup_devices, v1_lines) {
    EXPECT_EQ(v1_device_line({.allow = false}), "a");
    EXPECT_EQ(v1_device_line({.allow = true, .type = 'c', .major = 1, .minor = 3}), "c 1:3 rwm");
    EXPECT_EQ(v1_device_line({.allow = true, .type = 'b', .access = "m"}), "b *:* m");
}

TEST(cgroup_devices, no_rule_denies_everything) {
    const auto program = device_program({});
    ASSERT_TRUE(program);
    EXPECT_FALSE(run(*program, 'c', 1, 3, r));
    EXPECT_FALSE(run(*program, 'b', 8, 0, m));
}

TEST(cgroup_devices, the_last_rule_that_matches_decides) {
    const auto program = device_program({{.allow = true},
                                         {.allow = false, .type = 'c', .major = 10},
                                         {.allow = true, .type = 'c', .major = 10, .minor = 200, .access = "rw"}});
    ASSERT_TRUE(program);
    EXPECT_TRUE(run(*program, 'b', 10, 1, r | w | m));
    EXPECT_FALSE(run(*program, 'c', 10, 1, r));
    EXPECT_TRUE(run(*program, 'c', 10, 200, r | w));
    EXPECT_FALSE(run(*program, 'c', 10, 200, m));
    EXPECT_FALSE(run(*program, 'c', 10, 200, r | m));
    EXPECT_TRUE(run(*program, 'c', 11, 200, m));
}

TEST(cgroup_devices, the_default_list_of_a_container_allows_just_that) {
    const auto program = device_program({{.allow = false},
                                         {.allow = true, .type = 'c', .access = "m"},
                                         {.allow = true, .type = 'c', .major = 1, .minor = 3},
                                         {.allow = true, .type = 'c', .major = 136}});
    ASSERT_TRUE(program);
    EXPECT_TRUE(run(*program, 'c', 1, 3, r | w));
    EXPECT_FALSE(run(*program, 'c', 1, 1, r));
    EXPECT_TRUE(run(*program, 'c', 1, 1, m));
    EXPECT_TRUE(run(*program, 'c', 136, 77, r | w | m));
    EXPECT_FALSE(run(*program, 'b', 1, 3, r));
}

TEST(cgroup_devices, a_partial_deny_stops_every_request_that_needs_the_part) {
    const auto program =
        device_program({{.allow = true}, {.allow = false, .type = 'c', .major = 1, .minor = 3, .access = "w"}});
    ASSERT_TRUE(program);
    EXPECT_TRUE(run(*program, 'c', 1, 3, r));
    EXPECT_FALSE(run(*program, 'c', 1, 3, w));
    EXPECT_FALSE(run(*program, 'c', 1, 3, r | w));
}

TEST(cgroup_devices, nothing_follows_a_rule_that_always_matches) {
    const auto all = device_program({{.allow = true}});
    const auto more = device_program({{.allow = true, .type = 'c', .major = 1, .minor = 3}, {.allow = true}});
    ASSERT_TRUE(all && more);
    EXPECT_EQ(*all, *more);
}

TEST(cgroup_devices, refuses_what_no_kernel_could_hold) {
    EXPECT_FALSE(device_program({{.allow = true, .type = 'c', .major = 0xffffffffu}}));
    EXPECT_FALSE(device_program(std::vector<device_rule>(1001)));
}

} // namespace gantry::cgroup
