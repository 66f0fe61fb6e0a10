#include "plugins/cri-native/runtime/seccomp.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/files.hpp"
#include "base/unique_fd.hpp"
#include "plugins/cri-native/runtime/store/record_store.hpp"

namespace gantry::cri_native {

namespace {

using base::unique_fd;

constexpr auto compile_timeout = std::chrono::seconds(10);
constexpr std::size_t filter_limit = 4096 * 8; // BPF_MAXINSNS instructions

std::string hex(std::uint64_t value) {
    char text[17];
    std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
    return text;
}

/// Changes whenever the file's content does.
result<std::string> tag_of(const std::string& path) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return sys_error("stat " + path, errno);
    return hex(st.st_dev) + "." + hex(st.st_ino) + "." + hex(static_cast<std::uint64_t>(st.st_size)) + "." +
           hex(static_cast<std::uint64_t>(st.st_mtim.tv_sec)) + "." +
           hex(static_cast<std::uint64_t>(st.st_mtim.tv_nsec));
}

result<std::vector<std::uint8_t>> as_filter(const std::string& bytes, const std::string& path) {
    if (bytes.empty() || bytes.size() % 8 != 0)
        return error{.code = code::internal, .message = path + " is no seccomp filter; remove it"};
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
}

} // namespace

std::uint64_t seccomp_relevant(std::uint64_t capabilities) {
    std::uint64_t relevant = 0;
    for (const int number : {CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN, CAP_SYS_BOOT, CAP_SYS_CHROOT, CAP_SYS_MODULE,
                             CAP_SYS_PACCT, CAP_SYS_PTRACE, CAP_SYS_RAWIO, CAP_SYS_TIME, CAP_SYS_TTY_CONFIG,
                             CAP_SYS_NICE, CAP_SYSLOG, CAP_BPF, CAP_PERFMON})
        relevant |= std::uint64_t{1} << number;
    return capabilities & relevant;
}

seccomp_cache::seccomp_cache(sdk::host host, std::string dir, std::string compiler)
    : host_(std::move(host)), dir_(std::move(dir)), compiler_(std::move(compiler)) {}

result<std::string> seccomp_cache::compiler_tag() const { return tag_of(compiler_); }

result<void> seccomp_cache::sweep() {
    GANTRY_TRY(const auto tag, compiler_tag());
    GANTRY_TRY(const auto names, base::list_dir(dir_));
    for (const auto& name : names)
        if (!name.ends_with("-" + tag)) ::unlink((dir_ + "/" + name).c_str());
    return {};
}

result<std::vector<std::uint8_t>> seccomp_cache::load(const seccomp_choice& choice, std::uint64_t capabilities) {
    using kind = seccomp_choice::kind;
    if (choice.what == kind::unconfined) return std::vector<std::uint8_t>{};
    const bool own = choice.what == kind::runtime_default;
    const std::uint64_t caps = own ? seccomp_relevant(capabilities) : capabilities;
    GANTRY_TRY(const auto tag, compiler_tag());
    std::string name = "default";
    if (!own) {
        GANTRY_TRY(name, tag_of(choice.path));
    }
    const std::string path = dir_ + "/" + name + "-" + hex(caps) + "-" + tag;
    if (const auto cached = base::read_file(path, filter_limit); cached) return as_filter(*cached, path);

    // The helper writes the filter to a file of its own, which appears under its name only when it is complete.
    const std::string tmp = dir_ + "/" + store::new_id() + ".tmp";
    unique_fd out(::open(tmp.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!out) return sys_error("create " + tmp, errno);
    unique_fd complaints(::open(dir_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    sdk::command command{.argv = {compiler_, hex(caps)}, .fds = {-1, out.get(), complaints ? complaints.get() : -1}};
    if (!own) command.argv.push_back(choice.path);
    command.deadline = std::chrono::steady_clock::now() + compile_timeout;
    const auto ended = host_.run_wait(command);
    if (!ended || !ended->success()) {
        ::unlink(tmp.c_str());
        if (!ended) return ended.error();
        char said[512];
        const ssize_t n = complaints ? ::pread(complaints.get(), said, sizeof said, 0) : 0;
        std::string why(said, n > 0 ? static_cast<std::size_t>(n) : 0);
        while (!why.empty() && why.back() == '\n') why.pop_back();
        const std::string profile = own ? std::string("the default seccomp profile") : "seccomp profile " + choice.path;
        return error{.code = own ? code::internal : code::invalid,
                     .message = profile + " was refused by " + compiler_ + " (" + ended->text() + ")" +
                                (why.empty() ? "" : ": " + why)};
    }
    if (::rename(tmp.c_str(), path.c_str()) != 0) return sys_error("rename " + tmp, errno);
    GANTRY_TRY(const auto bytes, base::read_file(path, filter_limit));
    return as_filter(bytes, path);
}

} // namespace gantry::cri_native
