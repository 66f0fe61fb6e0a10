#include "plugins/cri-native/helper/worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace gantry::cri_helper {

namespace {

constexpr std::size_t report_limit = 64u << 20; // a summary may list every directory of a layer

result<void> close_all_but(std::vector<int> kept) {
    std::sort(kept.begin(), kept.end());
    unsigned from = 0;
    const auto close_up_to = [&](unsigned last) -> result<void> {
        if (from <= last && ::syscall(SYS_close_range, from, last, 0) != 0) return sys_error("close_range", errno);
        return {};
    };
    for (const int fd : kept) {
        if (fd > 0) GANTRY_CHECK(close_up_to(static_cast<unsigned>(fd) - 1));
        from = static_cast<unsigned>(fd) + 1;
    }
    return close_up_to(~0u);
}

std::string ending(int status) {
    if (WIFSIGNALED(status)) return std::string("was killed by ") + ::strsignal(WTERMSIG(status));
    return "ended with status " + std::to_string(WEXITSTATUS(status));
}

} // namespace

worker::worker(pid_t pid, base::unique_fd reports) : pid_(pid), reports_(std::move(reports)), lines_(report_limit) {}

worker::worker(worker&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), reports_(std::move(other.reports_)), lines_(std::move(other.lines_)) {}

worker::~worker() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

result<worker> worker::start(std::vector<int> kept, const std::function<result<void>(const reporter&)>& work) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return sys_error("pipe", errno);
    base::unique_fd reports(ends[0]);
    base::unique_fd writer(ends[1]);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return sys_error("fork", errno);
    if (pid > 0) return worker(pid, std::move(reports));

    const reporter report(writer.get());
    kept.push_back(STDERR_FILENO);
    kept.push_back(writer.get());
    auto done = close_all_but(std::move(kept));
    if (done && ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) done = sys_error("PR_SET_PDEATHSIG", errno);
    if (::getppid() != parent) ::_exit(1);
    if (done) done = work(report);
    if (!done) report.fail(done.error());
    ::_exit(done ? 0 : 1);
}

result<void> worker::receive(const std::function<result<void>(const base::json::object&)>& on_message) {
    GANTRY_TRY(const bool more, lines_.read(reports_.get()));
    result<void> outcome;
    std::string line;
    while (lines_.next(line)) {
        GANTRY_TRY(const auto value, base::parse_json(line, "report of a worker"));
        const auto* message = value.if_object();
        if (message == nullptr || !message->contains("type"))
            return error{.message = "a worker reported something unknown"};
        if (message->at("type") == "error")
            outcome = error_in(*message);
        else
            GANTRY_CHECK(on_message(*message));
    }
    if (!outcome || more) return outcome;
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (status == 0) return {};
    return error{.code = code::unavailable, .message = "a worker process of the helper " + ending(status)};
}

} // namespace gantry::cri_helper
