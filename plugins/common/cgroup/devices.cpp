#include "plugins/common/cgroup/devices.hpp"

#include <linux/bpf.h>
#include <sys/syscall.h>

#include <bit>
#include <cstring>

#include "base/unique_fd.hpp"

namespace gantry::cgroup {

namespace {

constexpr std::size_t rule_limit = 1000;
constexpr std::uint32_t all_access = BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE;

enum reg : std::uint8_t { r0, r1, r2, r3, r4, r5 };
constexpr reg context = r1, scratch = r1, type_reg = r2, access_reg = r3, major_reg = r4, minor_reg = r5;

std::uint64_t insn(std::uint8_t op, reg dst, reg src, std::int16_t offset, std::int32_t imm) {
    bpf_insn out{};
    out.code = op;
    out.dst_reg = dst;
    out.src_reg = src;
    out.off = offset;
    out.imm = imm;
    return std::bit_cast<std::uint64_t>(out);
}

std::uint64_t load_word(reg dst, std::int16_t offset) {
    return insn(BPF_LDX | BPF_MEM | BPF_W, dst, context, offset, 0);
}
std::uint64_t alu(std::uint8_t op, reg dst, std::int32_t imm) { return insn(BPF_ALU | op | BPF_K, dst, r0, 0, imm); }

std::uint32_t access_bits(const std::string& access) {
    std::uint32_t bits = 0;
    if (access.find('r') != std::string::npos) bits |= BPF_DEVCG_ACC_READ;
    if (access.find('w') != std::string::npos) bits |= BPF_DEVCG_ACC_WRITE;
    if (access.find('m') != std::string::npos) bits |= BPF_DEVCG_ACC_MKNOD;
    return bits;
}

/// Compares first, then jumps past the verdict when the rule does not match.
class rule_code {
public:
    explicit rule_code(const device_rule& rule) {
        if (rule.type != 'a') skip_if(BPF_JNE, type_reg, rule.type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
        if (const auto bits = access_bits(rule.access); bits != all_access) {
            // An allow rule must cover all that is asked for; a deny rule takes effect on any part of it.
            code_.push_back(insn(BPF_ALU | BPF_MOV | BPF_X, scratch, access_reg, 0, 0));
            code_.push_back(alu(BPF_AND, scratch, static_cast<std::int32_t>(rule.allow ? all_access & ~bits : bits)));
            skip_if(rule.allow ? BPF_JNE : BPF_JEQ, scratch, 0);
        }
        if (rule.major) skip_if(BPF_JNE, major_reg, *rule.major);
        if (rule.minor) skip_if(BPF_JNE, minor_reg, *rule.minor);
    }

    bool always_matches() const { return code_.empty(); }

    void append_to(std::vector<std::uint64_t>& program, bool allow) {
        code_.push_back(insn(BPF_ALU64 | BPF_MOV | BPF_K, r0, r0, 0, allow ? 1 : 0));
        code_.push_back(insn(BPF_JMP | BPF_EXIT, r0, r0, 0, 0));
        for (const std::size_t jump : jumps_) {
            auto fixed = std::bit_cast<bpf_insn>(code_[jump]);
            fixed.off = static_cast<std::int16_t>(code_.size() - jump - 1);
            code_[jump] = std::bit_cast<std::uint64_t>(fixed);
        }
        program.insert(program.end(), code_.begin(), code_.end());
    }

private:
    void skip_if(std::uint8_t op, reg value, std::uint32_t imm) {
        jumps_.push_back(code_.size());
        code_.push_back(insn(BPF_JMP | op | BPF_K, value, r0, 0, static_cast<std::int32_t>(imm)));
    }

    std::vector<std::uint64_t> code_;
    std::vector<std::size_t> jumps_;
};

int bpf(bpf_cmd command, bpf_attr& attr) { return static_cast<int>(::syscall(SYS_bpf, command, &attr, sizeof attr)); }

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

result<base::unique_fd> load(const std::vector<std::uint64_t>& program) {
    std::string log(16384, '\0');
    bpf_attr attr{};
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insn_cnt = static_cast<std::uint32_t>(program.size());
    attr.insns = address(program.data());
    attr.license = address("Apache-2.0");
    std::memcpy(attr.prog_name, "gantry_dev", sizeof "gantry_dev");
    base::unique_fd fd(bpf(BPF_PROG_LOAD, attr));
    if (fd) return fd;
    const int failure = errno;
    attr.log_level = 1; // again, for what the verifier says
    attr.log_size = static_cast<std::uint32_t>(log.size());
    attr.log_buf = address(log.data());
    fd.reset(bpf(BPF_PROG_LOAD, attr));
    if (fd) return fd;
    return sys_error("load the device program (" + std::string(log.c_str()) + ")", failure);
}

result<std::vector<std::uint32_t>> attached(int group_fd) {
    std::vector<std::uint32_t> ids(64);
    bpf_attr attr{};
    attr.query.target_fd = static_cast<std::uint32_t>(group_fd);
    attr.query.attach_type = BPF_CGROUP_DEVICE;
    attr.query.prog_ids = address(ids.data());
    attr.query.prog_cnt = static_cast<std::uint32_t>(ids.size());
    if (bpf(BPF_PROG_QUERY, attr) != 0) return sys_error("query the device programs of a cgroup", errno);
    ids.resize(attr.query.prog_cnt);
    return ids;
}

result<base::unique_fd> program_by_id(std::uint32_t id) {
    bpf_attr attr{};
    attr.prog_id = id;
    base::unique_fd fd(bpf(BPF_PROG_GET_FD_BY_ID, attr));
    if (!fd) return sys_error("open the attached device program " + std::to_string(id), errno);
    return fd;
}

} // namespace

std::string v1_device_line(const device_rule& rule) {
    if (rule.type == 'a') return "a";
    const auto number = [](const std::optional<std::uint32_t>& n) { return n ? std::to_string(*n) : "*"; };
    return std::string(1, rule.type) + " " + number(rule.major) + ":" + number(rule.minor) + " " + rule.access;
}

result<std::vector<std::uint64_t>> device_program(const std::vector<device_rule>& rules) {
    if (rules.size() > rule_limit)
        return error{.code = code::invalid,
                     .message =
                         std::to_string(rules.size()) + " device rules; the limit is " + std::to_string(rule_limit)};
    std::vector<std::uint64_t> program = {
        load_word(type_reg, offsetof(bpf_cgroup_dev_ctx, access_type)),
        alu(BPF_AND, type_reg, 0xffff),
        load_word(access_reg, offsetof(bpf_cgroup_dev_ctx, access_type)),
        alu(BPF_RSH, access_reg, 16),
        load_word(major_reg, offsetof(bpf_cgroup_dev_ctx, major)),
        load_word(minor_reg, offsetof(bpf_cgroup_dev_ctx, minor)),
    };
    for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
        if (rule->major.value_or(0) > INT32_MAX || rule->minor.value_or(0) > INT32_MAX)
            return error{.code = code::invalid,
                         .message = "device rule " + v1_device_line(*rule) + ": no such device number"};
        rule_code one(*rule);
        const bool last = one.always_matches(); // what follows could never run, which the verifier refuses
        one.append_to(program, rule->allow);
        if (last) return program;
    }
    rule_code(device_rule{}).append_to(program, false);
    return program;
}

result<void> attach_device_program(int group_fd, const std::vector<device_rule>& rules) {
    GANTRY_TRY(const auto program, device_program(rules));
    GANTRY_TRY(const auto loaded, load(program));
    GANTRY_TRY(const auto old_ids, attached(group_fd));
    std::vector<base::unique_fd> old;
    for (const auto id : old_ids) {
        GANTRY_TRY(auto fd, program_by_id(id));
        old.push_back(std::move(fd));
    }
    bpf_attr attr{};
    attr.target_fd = static_cast<std::uint32_t>(group_fd);
    attr.attach_bpf_fd = static_cast<std::uint32_t>(loaded.get());
    attr.attach_type = BPF_CGROUP_DEVICE;
    attr.attach_flags = BPF_F_ALLOW_MULTI;
    if (!old.empty()) {
        attr.attach_flags |= BPF_F_REPLACE;
        attr.replace_bpf_fd = static_cast<std::uint32_t>(old.front().get());
    }
    if (bpf(BPF_PROG_ATTACH, attr) != 0) return sys_error("attach the device program to a cgroup", errno);
    for (std::size_t i = 1; i < old.size(); ++i) {
        bpf_attr detach{};
        detach.target_fd = static_cast<std::uint32_t>(group_fd);
        detach.attach_bpf_fd = static_cast<std::uint32_t>(old[i].get());
        detach.attach_type = BPF_CGROUP_DEVICE;
        if (bpf(BPF_PROG_DETACH, detach) != 0) return sys_error("detach an earlier device program of a cgroup", errno);
    }
    return {};
}

} // namespace gantry::cgroup
