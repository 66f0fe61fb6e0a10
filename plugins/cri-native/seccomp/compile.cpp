#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>

#include "base/unique_fd.hpp"
#include "plugins/cri-native/seccomp/profile.hpp"

namespace gantry::seccomp {

namespace {

struct context_release {
    void operator()(void* context) const noexcept { ::seccomp_release(context); }
};
using context = std::unique_ptr<void, context_release>;

/// Syscalls that Debian 12's libseccomp does not know, and which it therefore cannot put into a filter for more than
/// one architecture. Their numbers are the same on all of them.
const std::map<std::string_view, int> young_syscalls = {
    {"set_mempolicy_home_node", 450},
    {"cachestat", 451},
    {"fchmodat2", 452},
    {"map_shadow_stack", 453},
    {"futex_wake", 454},
    {"futex_wait", 455},
    {"futex_requeue", 456},
    {"statmount", 457},
    {"listmount", 458},
    {"lsm_get_self_attr", 459},
    {"lsm_set_self_attr", 460},
    {"lsm_list_modules", 461},
    {"mseal", 462},
    {"setxattrat", 463},
    {"getxattrat", 464},
    {"listxattrat", 465},
    {"removexattrat", 466},
};
constexpr std::uint32_t first_common_number = 424; // pidfd_send_signal: where the tables of all architectures meet

error failed(std::string_view what, int code_number) { return sys_error(what, -code_number); }

std::uint32_t kernel_action(action what, std::uint16_t number) {
    switch (what) {
    case action::allow: return SCMP_ACT_ALLOW;
    case action::error: return SCMP_ACT_ERRNO(number);
    case action::kill_process: return SCMP_ACT_KILL_PROCESS;
    case action::kill_thread: return SCMP_ACT_KILL_THREAD;
    case action::trap: return SCMP_ACT_TRAP;
    case action::trace: return SCMP_ACT_TRACE(number);
    case action::log: return SCMP_ACT_LOG;
    case action::notify: return SCMP_ACT_NOTIFY;
    }
    return SCMP_ACT_KILL_PROCESS;
}

scmp_compare kernel_comparison(comparison op) {
    switch (op) {
    case comparison::not_equal: return SCMP_CMP_NE;
    case comparison::less: return SCMP_CMP_LT;
    case comparison::less_equal: return SCMP_CMP_LE;
    case comparison::equal: return SCMP_CMP_EQ;
    case comparison::greater_equal: return SCMP_CMP_GE;
    case comparison::greater: return SCMP_CMP_GT;
    case comparison::masked_equal: return SCMP_CMP_MASKED_EQ;
    }
    return SCMP_CMP_EQ;
}

scmp_arg_cmp kernel_argument(const argument& one) {
    return {.arg = one.index, .op = kernel_comparison(one.op), .datum_a = one.value, .datum_b = one.value_two};
}

bool repeats_an_argument(const std::vector<argument>& when) {
    unsigned seen = 0; // bits
    for (const auto& one : when) {
        if ((seen >> one.index & 1) != 0) return true;
        seen |= 1u << one.index;
    }
    return false;
}

result<void> add_rule(void* filter, const rule& from, const std::string& name, std::uint32_t otherwise) {
    const std::uint32_t then = kernel_action(from.then, from.error_number);
    if (then == otherwise) return {}; // libseccomp refuses rules that say what happens anyway
    const int number = ::seccomp_syscall_resolve_name(name.c_str());
    if (number == __NR_SCMP_ERROR) return {};
    std::vector<scmp_arg_cmp> when;
    for (const auto& one : from.when) when.push_back(kernel_argument(one));
    const auto add = [&](const scmp_arg_cmp* list, std::size_t count) -> result<void> {
        const int code_number = ::seccomp_rule_add_array(filter, then, number, static_cast<unsigned>(count), list);
        // EEXIST: said twice. EDOM: one architecture of the filter has no such call.
        if (code_number == 0 || code_number == -EEXIST || code_number == -EDOM) return {};
        return failed("add the rule for " + name, code_number);
    };
    if (!repeats_an_argument(from.when)) return add(when.data(), when.size());
    for (const auto& one : when) GANTRY_CHECK(add(&one, 1));
    return {};
}

/// Highest syscall number that any rule names, for one architecture.
std::uint32_t last_known(const profile& from, std::uint32_t architecture) {
    int last = 0;
    for (const auto& rule : from.rules) {
        for (const auto& name : rule.names) {
            last = std::max(last, ::seccomp_syscall_resolve_name_arch(architecture, name.c_str()));
            if (const auto young = young_syscalls.find(name); young != young_syscalls.end())
                last = std::max(last, young->second);
        }
    }
    return static_cast<std::uint32_t>(last);
}

/// Rules for syscalls that libseccomp leaves out: number -> action. Conditions on arguments cannot be told for them;
/// such a rule is left out as well.
std::map<std::uint32_t, std::uint32_t> young_rules(const profile& from) {
    std::map<std::uint32_t, std::uint32_t> rules;
    for (const auto& rule : from.rules) {
        for (const auto& name : rule.names) {
            const auto young = young_syscalls.find(name);
            if (young == young_syscalls.end() || !rule.when.empty()) continue;
            if (::seccomp_syscall_resolve_name(name.c_str()) != __NR_SCMP_ERROR) continue;
            rules[static_cast<std::uint32_t>(young->second)] = kernel_action(rule.then, rule.error_number);
        }
    }
    return rules;
}

/// Instructions for one architecture that run before libseccomp's. Calls newer than the profile get ENOSYS: libraries
/// try a new call first and fall back only when it is not there, while EPERM looks like a refusal.
void append_young(std::vector<sock_filter>& lines, const profile& from, std::uint32_t audit_arch,
                  std::uint32_t architecture) {
    constexpr std::uint32_t x32_bit = 0x40000000;
    std::vector<sock_filter> body;
    const std::uint32_t last = last_known(from, architecture);
    if (from.otherwise == action::error && last >= first_common_number) { // an older profile means what it says
        body.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 0, 1));
        body.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
    }
    const auto young = young_rules(from);
    if (!young.empty())
        body.push_back(
            BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, young.begin()->first, 0, static_cast<std::uint8_t>(young.size() * 2)));
    for (const auto& [number, then] : young) {
        body.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
        body.push_back(BPF_STMT(BPF_RET | BPF_K, then));
    }
    if (body.empty()) return;
    const auto length = static_cast<std::uint8_t>(body.size());
    lines.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
    lines.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, audit_arch, 0, static_cast<std::uint8_t>(length + 2)));
    lines.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    lines.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, x32_bit, length, 0));
    lines.insert(lines.end(), body.begin(), body.end());
}

std::vector<sock_filter> young_calls(const profile& from) {
    std::vector<sock_filter> lines;
#if defined(__x86_64__)
    append_young(lines, from, AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64);
    append_young(lines, from, AUDIT_ARCH_I386, SCMP_ARCH_X86);
#elif defined(__aarch64__)
    append_young(lines, from, AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64);
    append_young(lines, from, AUDIT_ARCH_ARM, SCMP_ARCH_ARM);
#elif defined(__riscv)
    append_young(lines, from, AUDIT_ARCH_RISCV64, SCMP_ARCH_RISCV64);
#endif
    return lines;
}

result<std::string> exported(void* filter) {
    base::unique_fd file(::memfd_create("seccomp", MFD_CLOEXEC));
    if (!file) return sys_error("memfd_create", errno);
    if (const int code_number = ::seccomp_export_bpf(filter, file.get()); code_number != 0)
        return failed("compile the filter", code_number);
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    std::string bytes(static_cast<std::size_t>(size), '\0');
    if (::pread(file.get(), bytes.data(), bytes.size(), 0) != size) return sys_error("read the compiled filter", errno);
    return bytes;
}

} // namespace

result<std::string> compile(const profile& from) {
    const std::uint32_t otherwise = kernel_action(from.otherwise, from.error_number);
    const context filter(::seccomp_init(otherwise));
    if (!filter) return error{.code = code::internal, .message = "seccomp_init failed"};
    for (const auto& name : from.architectures) {
        const std::uint32_t token = ::seccomp_arch_resolve_name(name.c_str());
        if (token == 0) return error{.code = code::invalid, .message = "architecture " + name + " is unknown"};
        const int code_number = ::seccomp_arch_add(filter.get(), token);
        // One of other byte order or word size cannot share a filter, nor run here.
        if (code_number != 0 && code_number != -EEXIST && code_number != -EINVAL && code_number != -EDOM)
            return failed("add architecture " + name, code_number);
    }
    // A binary tree: costs milliseconds here, once, and saves hundreds of instructions on every call of a container.
    ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
    for (const auto& rule : from.rules)
        for (const auto& name : rule.names) GANTRY_CHECK(add_rule(filter.get(), rule, name, otherwise));
    GANTRY_TRY(const auto compiled, exported(filter.get()));
    const auto young = young_calls(from);
    std::string bytes(reinterpret_cast<const char*>(young.data()), young.size() * sizeof(sock_filter));
    bytes += compiled;
    if (bytes.size() / sizeof(sock_filter) > BPF_MAXINSNS)
        return error{.code = code::invalid,
                     .message = "the filter has " + std::to_string(bytes.size() / sizeof(sock_filter)) +
                                " instructions; the kernel takes " + std::to_string(BPF_MAXINSNS)};
    return bytes;
}

} // namespace gantry::seccomp
