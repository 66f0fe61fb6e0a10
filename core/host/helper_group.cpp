#include "core/host/helper_group.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>
#include <vector>

#include "base/files.hpp"

namespace gantry::core {

namespace {

/// Mount points of cgroup hierarchies, the best first, from proc(5) mountinfo.
std::vector<std::string> hierarchies() {
    std::vector<std::string> v2, pids, freezer;
    const auto text = base::read_file("/proc/self/mountinfo");
    if (!text) return {};
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string id, parent, device, root, point, word, type, source, options;
        words >> id >> parent >> device >> root >> point;
        while (words >> word && word != "-") {}
        words >> type >> source >> options;
        const auto has = [&](const std::string& option) { return ("," + options + ",").find("," + option + ",") != std::string::npos; };
        if (type == "cgroup2") v2.push_back(point);
        if (type == "cgroup" && has("pids")) pids.push_back(point);
        if (type == "cgroup" && has("freezer")) freezer.push_back(point);
    }
    for (const auto* more : {&pids, &freezer}) v2.insert(v2.end(), more->begin(), more->end());
    return v2;
}

void kill_members(const std::string& path) {
    base::unique_fd all(::open((path + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC)); // v2, Linux 5.14
    if (all && ::write(all.get(), "1", 1) == 1) return;
    for (int round = 0; round < 100; ++round) { // members may fork while they are read
        const auto text = base::read_file(path + "/cgroup.procs", 1u << 20);
        if (!text || text->empty()) return;
        std::istringstream pids(*text);
        for (pid_t pid = 0; pids >> pid;)
            if (pid > 0) ::kill(pid, SIGKILL);
        std::this_thread::yield();
    }
}

bool remove_group(const std::string& path) {
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return true;
    // A helper may have made cgroups of its own below.
    if (const auto names = base::list_dir(path)) {
        for (const auto& name : *names) {
            const auto child = path + "/" + name;
            struct stat st {};
            if (::lstat(child.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) continue;
            kill_members(child);
            remove_group(child);
        }
    }
    return ::rmdir(path.c_str()) == 0 || errno == ENOENT;
}

void sweep(const std::string& dir) {
    const auto names = base::list_dir(dir);
    if (!names) return;
    for (const auto& name : *names) {
        const auto path = dir + "/" + name;
        struct stat st {};
        if (::lstat(path.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) continue;
        kill_members(path);
        for (int tries = 0; tries < 200 && !remove_group(path); ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

} // namespace

void helper_group::kill() const { kill_members(path_); }
bool helper_group::remove() { return remove_group(path_); }

result<std::unique_ptr<helper_groups>> helper_groups::open(const std::string& node_instance) {
    error last{.code = code::unsupported,
               .message = "no cgroup hierarchy is mounted (cgroup2, or cgroup with pids or freezer): helpers are killed by process group only"};
    for (const auto& mount : hierarchies()) {
        const auto dir = mount + "/gantry-" + node_instance + "/helpers";
        if (auto made = base::make_dirs(dir, 0755); !made) {
            last = std::move(made).error();
            continue;
        }
        sweep(dir);
        return std::unique_ptr<helper_groups>(new helper_groups(dir));
    }
    return last;
}

void helper_groups::leave() const {
    ::rmdir(dir_.c_str());
    ::rmdir(dir_.substr(0, dir_.rfind('/')).c_str()); // stays while others use it
}

result<std::unique_ptr<helper_group>> helper_groups::create(const std::string& name) {
    const auto path = dir_ + "/" + name;
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir " + path, errno);
    base::unique_fd procs(::open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (!procs) return sys_error("open " + path + "/cgroup.procs", errno);
    return std::make_unique<helper_group>(path, std::move(procs));
}

} // namespace gantry::core
