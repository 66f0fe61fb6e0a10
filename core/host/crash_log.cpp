#include "core/host/crash_log.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "base/files.hpp"
#include "core/host/crash_handler.hpp"
#include "core/host/quarantine.hpp"

namespace gantry::core {

namespace {

constexpr std::size_t most_records = 100;

std::string boot_id() {
    auto text = base::read_file("/proc/sys/kernel/random/boot_id", 4096);
    if (!text) return "unknown";
    while (text->ends_with('\n')) text->pop_back();
    return *std::move(text);
}

std::int64_t unix_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

} // namespace

result<std::unique_ptr<crash_log>> crash_log::open(const std::string& dir) {
    GANTRY_CHECK(base::make_dirs(dir + "/quarantine", 0700));
    const auto path = dir + "/crashes";
    base::unique_fd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
    if (!fd) return sys_error("open " + path, errno);
    set_crash_file(std::move(fd));
    return std::unique_ptr<crash_log>(new crash_log(dir));
}

crash_log::~crash_log() { set_crash_file({}); }

result<std::map<std::string, std::string>> crash_log::judge() {
    std::optional<loading_mark> mark;
    if (const auto text = base::read_file(dir_ + "/loading", 4096)) mark = parse_mark(*text);
    GANTRY_TRY(const auto text, base::read_file(dir_ + "/crashes", 1u << 20));
    auto crashes = parse_crashes(text);
    for (const auto& verdict : judge_crashes(mark, crashes, boot_id())) {
        GANTRY_CHECK(base::write_file_atomic(dir_ + "/quarantine/" + verdict.instance, verdict.reason));
        std::erase_if(crashes, [&](const crash_record& crash) { return crash.instance == verdict.instance; }); // a fresh start after enable
    }
    if (crashes.size() > most_records) crashes.erase(crashes.begin(), crashes.end() - most_records);
    if (const auto kept = format_crashes(crashes); kept != text) {
        GANTRY_CHECK(base::write_file_atomic(dir_ + "/crashes", kept));
        base::unique_fd fd(::open((dir_ + "/crashes").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
        if (!fd) return sys_error("open " + dir_ + "/crashes", errno);
        set_crash_file(std::move(fd));
    }
    clear_loading();
    std::map<std::string, std::string> quarantined;
    GANTRY_TRY(const auto names, base::list_dir(dir_ + "/quarantine"));
    for (const auto& name : names) {
        GANTRY_TRY(quarantined[name], base::read_file(dir_ + "/quarantine/" + name, 65536));
    }
    return quarantined;
}

result<void> crash_log::mark_loading(const std::string& instance, const std::string& id, const std::string& sha256) {
    return base::write_file_atomic(dir_ + "/loading", format_mark({.instance = instance,
                                                                   .id = id,
                                                                   .sha256 = sha256.empty() ? "built-in" : sha256,
                                                                   .boot_id = boot_id(),
                                                                   .unix_ns = unix_ns()}));
}

void crash_log::clear_loading() { ::unlink((dir_ + "/loading").c_str()); }

result<void> crash_log::lift(const std::string& instance) {
    if (::unlink((dir_ + "/quarantine/" + instance).c_str()) != 0 && errno != ENOENT)
        return sys_error("remove the quarantine of " + instance, errno);
    return {};
}

} // namespace gantry::core
