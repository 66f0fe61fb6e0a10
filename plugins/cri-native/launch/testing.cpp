#include "plugins/cri-native/launch/testing.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/files.hpp"
#include "plugins/cri-native/launch/defaults.hpp"
#include "plugins/cri-native/runtime/spec/capabilities.hpp"

namespace gantry::cri_native::launch::testing {

namespace {

std::string unique_name() {
    static std::atomic<int> count{0};
    return "t" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

[[noreturn]] void die(const std::string& what) {
    std::fprintf(stderr, "test set-up failed: %s\n", what.c_str());
    std::abort();
}

void must(const result<void>& r) {
    if (!r) die(r.error().message);
}

// Answers ENOSYS to some system calls, for this thread and what it starts.
void forbid(const std::vector<int>& calls) {
    std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)}; // seccomp_data.nr
    for (const int call : calls) {
        filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
        filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
    }
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) die("seccomp");
}

const supervisor_image& image_of_process() {
    static const supervisor_image made = [] {
        auto r = supervisor_image::make();
        if (!r) die(r.error().message);
        return std::move(*r);
    }();
    return made;
}

void detach_mounts_below(const std::string& path) {
    std::ifstream table("/proc/self/mountinfo");
    std::vector<std::string> points;
    for (std::string text; std::getline(table, text);) {
        std::istringstream fields(text);
        std::string skip, point;
        fields >> skip >> skip >> skip >> skip >> point;
        if (point.starts_with(path + "/")) points.push_back(point);
    }
    for (auto it = points.rbegin(); it != points.rend(); ++it) ::umount2(it->c_str(), MNT_DETACH);
}

void kill_members(const std::string& dir) {
    std::ifstream procs(dir + "/cgroup.procs");
    for (pid_t pid; procs >> pid;) ::kill(pid, SIGKILL);
}

void remove_cgroup(const std::string& dir) {
    for (const auto& name : names_in(dir)) {
        struct stat st {};
        if (::stat((dir + "/" + name).c_str(), &st) == 0 && S_ISDIR(st.st_mode)) remove_cgroup(dir + "/" + name);
    }
    eventually([&] {
        kill_members(dir);
        return ::rmdir(dir.c_str()) == 0 || errno == ENOENT;
    });
}

} // namespace

scratch::scratch() : path_("/tmp/gantry-launch-" + unique_name()) { must(base::make_dirs(path_, 0755)); }

scratch::~scratch() {
    detach_mounts_below(path_);
    if (auto r = base::remove_tree(path_); !r) std::fprintf(stderr, "%s\n", r.error().message.c_str());
}

test_cgroup::test_cgroup(const std::string& name, bool hybrid) {
    const std::string leaf = "gantry-" + unique_name() + "-" + name;
    std::ifstream own("/proc/self/cgroup");
    for (std::string text; std::getline(own, text);) {
        const auto first = text.find(':');
        const auto second = text.find(':', first + 1);
        std::string controllers = text.substr(first + 1, second - first - 1);
        if (controllers.empty()) continue; // hybrid v2
        std::string mount = controllers.starts_with("name=") ? controllers.substr(5) : controllers;
        const std::string root = "/sys/fs/cgroup/" + mount;
        const std::string dir = root + "/" + leaf;
        if (::mkdir(dir.c_str(), 0755) != 0) continue; // not mounted here
        if (mount == "cpuset")
            for (const char* file : {"cpuset.cpus", "cpuset.mems"})
                write_all(dir + "/" + file, read_all(root + "/" + file));
        plan_.v1.push_back(
            {.dir = dir, .options = controllers.starts_with("name=") ? "none," + controllers : controllers});
        if (mount == "freezer") plan_.freezer_dir = dir;
        if (mount == "memory") plan_.oom_file = dir + "/memory.oom_control";
    }
    if (hybrid && !plan_.v1.empty()) {
        plan_.v2 = "/sys/fs/cgroup/unified/" + leaf;
        must(base::make_dirs(plan_.v2, 0755));
    }
    if (!plan_.v1.empty()) return;
    plan_.v2 = "/sys/fs/cgroup/" + leaf;
    must(base::make_dirs(plan_.v2, 0755));
    plan_.oom_file = plan_.v2 + "/memory.events";
}

test_cgroup::~test_cgroup() {
    for (const auto& dir : dirs()) remove_cgroup(dir);
}

std::string test_cgroup::dir(const std::string& controller) const {
    for (const auto& h : plan_.v1)
        if (h.options == controller) return h.dir;
    return plan_.v2;
}

std::vector<std::string> test_cgroup::v1_dirs() const {
    std::vector<std::string> all;
    for (const auto& h : plan_.v1) all.push_back(h.dir);
    return all;
}

std::vector<std::string> test_cgroup::dirs() const {
    auto all = v1_dirs();
    if (!plan_.v2.empty()) all.push_back(plan_.v2);
    return all;
}

std::uint64_t capability_bit(std::string_view name) {
    return std::uint64_t{1} << parse_capability(name).value();
}

std::uint64_t all_capabilities() { return (std::uint64_t{1} << (CAP_CHECKPOINT_RESTORE + 1)) - 1; }

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(2ms);
    }
    return true;
}

std::string read_all(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

void write_all(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::vector<std::string> names_in(const std::string& dir) {
    auto names = base::list_dir(dir);
    return names ? std::move(*names) : std::vector<std::string>{};
}

std::string log_text(const std::string& path, const std::string& stream) {
    std::string out;
    std::ifstream file(path, std::ios::binary);
    for (std::string text; std::getline(file, text);) {
        const auto a = text.find(' ');
        const auto b = text.find(' ', a + 1);
        const auto c = text.find(' ', b + 1);
        if (c == std::string::npos) return "malformed log line: " + text;
        if (!stream.empty() && text.substr(a + 1, b - a - 1) != stream) continue;
        out += text.substr(c + 1);
        if (text[b + 1] == 'F') out += '\n';
    }
    return out;
}

pod::pod(options o) {
    run_dir_ = dir_ / "run";
    must(base::make_dirs(run_dir_, 0700));
    if (o.plan.id.empty()) o.plan.id = "pod";
    o.plan.run_dir = run_dir_;
    if (o.plan.hostname.empty()) o.plan.hostname = "test-pod";
    if (o.plan.shm_bytes == 0) o.plan.shm_bytes = 8u << 20;
    std::optional<result<void>> ready;
    result<std::unique_ptr<launch::client>> made = error{.message = "not tried"};
    const auto spawn = [&] {
        if (!o.forbidden_syscalls.empty()) forbid(o.forbidden_syscalls);
        made =
            client::spawn(image_of_process(), o.plan, handlers(), [&](result<void> r) { ready.emplace(std::move(r)); });
    };
    std::thread(spawn).join(); // a filter is of the thread that installs it
    if (!made) {
        failure_ = made.error();
        return;
    }
    client_ = std::move(*made);
    if (!pump([&] { return ready.has_value(); })) die("the supervisor did not say hello");
    if (!*ready) failure_ = ready->error();
}

pod::~pod() {
    if (client_ && !failure_ && !lost_)
        static_cast<void>(await<void>([&](callback<void> done) { client_->shutdown(true, std::move(done)); }));
    client_.reset();
    eventually([&] { return remove_sandbox(run_dir_).ok(); });
}

client::events pod::handlers() {
    return {.exited = [this](const container_info& c) { exits_.push_back(c); },
            .lost = [this](const error& e) { lost_ = e; }};
}

std::string pod::image() {
    const std::string root = dir_ / "image";
    if (image_made_) return root;
    image_made_ = true;
    for (const char* name : {"", "/bin", "/etc", "/tmp", "/root", "/proc", "/sys", "/dev"})
        must(base::make_dirs(root + name, 0755));
    ::chmod((root + "/tmp").c_str(), 01777);
    if (::link("/bin/busybox", (root + "/bin/busybox").c_str()) != 0) {
        write_all(root + "/bin/busybox", read_all("/bin/busybox"));
        ::chmod((root + "/bin/busybox").c_str(), 0755);
    }
    for (const char* applet :
         {"sh",   "cat",  "echo",  "ls",    "id",     "sleep",  "true", "false",    "grep",     "head",   "tail",
          "wc",   "stat", "touch", "mkdir", "rm",     "mv",     "ln",   "readlink", "hostname", "kill",   "ps",
          "seq",  "dd",   "stty",  "tty",   "env",    "printf", "test", "mount",    "umount",   "chmod",  "chown",
          "date", "tr",   "yes",   "nc",    "ip",     "sync",   "df",   "setsid",   "nohup",    "usleep", "awk",
          "sed",  "pwd",  "cut",   "mknod", "ulimit", "which",  "xargs"})
        static_cast<void>(!::symlink("busybox", (root + "/bin/" + applet).c_str()));
    return root;
}

container_plan pod::plan(const std::string& id, std::vector<std::string> argv) {
    container_plan p;
    p.id = id;
    p.log_path = log_path(id);
    p.process.argv = std::move(argv);
    p.process.env = {"PATH=/bin"};
    p.process.capabilities = default_capabilities();
    for (const char* name : {"-upper", "-work"}) must(base::make_dirs(dir_ / (id + name), 0755));
    p.rootfs.overlay =
        overlay_plan{.base = {}, .lower = {image()}, .upper = dir_ / (id + "-upper"), .work = dir_ / (id + "-work")};
    p.mounts = default_mounts(false);
    std::erase_if(p.mounts, [](const mount_plan& m) { return m.kind == mount_kind::cgroup; });
    p.devices = default_devices();
    return p;
}

result<pid_t> pod::create(const container_plan& plan) {
    return await<pid_t>([&](callback<pid_t> done) { client_->create(plan, std::move(done)); });
}

result<void> pod::start(const std::string& id) {
    return await<void>([&](callback<void> done) { client_->start(id, std::move(done)); });
}

result<void> pod::create_and_start(const container_plan& plan) {
    if (auto made = create(plan); !made) return std::move(made).error();
    return start(plan.id);
}

result<void> pod::signal(const std::string& id, int signal) {
    return await<void>([&](callback<void> done) { client_->signal(id, signal, std::move(done)); });
}

std::optional<container_info> pod::wait_exit(const std::string& id, std::chrono::milliseconds limit) {
    std::optional<container_info> found;
    pump(
        [&] {
            for (const auto& c : exits_)
                if (c.id == id) found = c;
            return found.has_value();
        },
        limit);
    return found;
}

result<container_info> pod::run(const container_plan& plan) {
    if (auto started = create_and_start(plan); !started) return std::move(started).error();
    auto end = wait_exit(plan.id);
    if (!end) return error{.code = code::timeout, .message = plan.id + " did not exit"};
    return *end;
}

exec_plan pod::exec_shell(const std::string& script) {
    exec_plan p;
    p.process.argv = {"/bin/sh", "-c", script};
    p.process.env = {"PATH=/bin"};
    p.process.capabilities = default_capabilities();
    return p;
}

result<exec_result> pod::exec(const std::string& id, const exec_plan& plan) {
    return await<exec_result>([&](callback<exec_result> done) { client_->exec_captured(id, plan, std::move(done)); });
}

result<exec_result> pod::exec(const std::string& id, const std::string& script) { return exec(id, exec_shell(script)); }

bool pod::pump(const std::function<bool()>& done, std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
        if (!client_ || std::chrono::steady_clock::now() > end) return false;
        pollfd ready{client_->fd(), POLLIN, 0};
        if (lost_) {
            std::this_thread::sleep_for(1ms);
            continue;
        }
        if (::poll(&ready, 1, 20) > 0) client_->on_readable();
    }
    return true;
}

result<std::vector<container_info>> pod::reconnect() {
    std::optional<result<std::vector<container_info>>> known;
    auto made = client::connect(run_dir_, handlers(),
                                [&](result<std::vector<container_info>> r) { known.emplace(std::move(r)); });
    if (!made) return std::move(made).error();
    client_ = std::move(*made);
    if (!pump([&] { return known.has_value(); })) return error{.code = code::timeout, .message = "no hello"};
    return std::move(*known);
}

} // namespace gantry::cri_native::launch::testing
