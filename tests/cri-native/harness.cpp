#include "tests/cri-native/harness.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/files.hpp"
#include "base/unique_fd.hpp"
#include "gantry/abi/draft/network.h"
#include "gantry/sdk/fake_host.h"
#include "plugins/common/cgroup/cgroup.hpp"
#include "tests/cri-native/image.hpp"

namespace gantry::cri_native::testing {

namespace {

const gantry_plugin_entry* library() {
    static const gantry_plugin_entry* entry = [] {
        void* loaded = ::dlopen(GANTRY_CRI_NATIVE_SO, RTLD_NOW | RTLD_LOCAL);
        if (loaded == nullptr) throw std::runtime_error(::dlerror());
        return reinterpret_cast<gantry_plugin_main_fn>(::dlsym(loaded, "gantry_plugin_main"))();
    }();
    return entry;
}

fake::outcome failed(gantry_status code, const std::string& message) {
    fake::outcome outcome;
    outcome.error.code = code;
    outcome.error.message = message;
    return outcome;
}

/// Raises loopback in a network namespace, on a thread that may leave its own.
bool raise_loopback(int netns) {
    bool raised = false;
    std::thread([&] {
        if (::setns(netns, CLONE_NEWNET) != 0) return;
        const base::unique_fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ifreq request{};
        std::strcpy(request.ifr_name, "lo");
        request.ifr_flags = IFF_UP | IFF_RUNNING;
        raised = ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
    }).join();
    return raised;
}

const cgroup::hierarchy& machine() {
    static const cgroup::hierarchy hierarchy = *cgroup::hierarchy::open();
    return hierarchy;
}

std::vector<std::string> mount_points() {
    const auto& layout = machine().layout();
    std::vector<std::string> points;
    for (const auto& mount : layout.v1) points.push_back(mount.point);
    if (!layout.unified.empty()) points.push_back(layout.unified);
    return points;
}

} // namespace

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        ::usleep(2000);
    }
    return true;
}

std::string read_text(const std::string& path) {
    const std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

struct node::parts {
    std::unique_ptr<fake::host> host;
    std::unique_ptr<fake::plugin> plugin;
    const gantry_runtime* runtime = nullptr;
    const gantry_image* images = nullptr;
    std::vector<std::string> misbehaviour;

    std::atomic<bool> network_fails{false};
    std::atomic<int> calls{0};
    std::mutex mutex;
    std::set<std::string> networks;

    void add_peers() {
        host->add_peer(GANTRY_NETWORK, "status", [](const auto&, const auto&, const auto&) {
            fake::outcome outcome;
            outcome.bytes = "{}";
            return outcome;
        });
        host->add_peer(GANTRY_NETWORK, "add",
                       [this](const std::string&, const std::vector<fake::shared_fd>& fds, const std::string& key) {
                           ++calls;
                           if (network_fails) return failed(GANTRY_RESOURCE, "no addresses left");
                           if (fds.size() != 1 || !raise_loopback(*fds[0]))
                               return failed(GANTRY_INTERNAL, "ADD came without a network namespace");
                           const std::lock_guard lock(mutex);
                           networks.insert(key);
                           fake::outcome outcome;
                           outcome.bytes = R"({"cniVersion":"1.1.0","ips":[{"address":"127.0.0.1/8"}]})";
                           return outcome;
                       });
        host->add_peer(GANTRY_NETWORK, "del", [this](const auto&, const auto&, const std::string& key) {
            ++calls;
            const std::lock_guard lock(mutex);
            networks.erase(key);
            return fake::outcome{};
        });
    }
};

node::node() : parts_(std::make_unique<parts>()) {
    static std::atomic<int> count{0};
    instance_ = "t" + std::to_string(::getpid()) + "n" + std::to_string(++count);
    dir_ = "/tmp/gantry-" + instance_;
    if (!base::make_dirs(dir_, 0755)) throw std::runtime_error("cannot make " + dir_);
    if (const auto started = start(); !started) throw std::runtime_error(started.error().message);
    load_image();
}

node::~node() {
    if (parts_->plugin) {
        cri::ListPodSandboxRequest every;
        if (const auto pods = call<cri::ListPodSandboxResponse>(runtime().list_pod_sandbox, every); pods)
            for (const auto& pod : pods->items()) (void)remove_pod(pod.id());
    }
    stop();
    // What a failed test left: processes by their cgroups, then the cgroups.
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    for (const auto& group : {"/" + instance_, "/gantry-" + instance_}) {
        (void)machine().kill_all(group, deadline);
        (void)machine().remove(group, deadline);
    }
    (void)base::remove_tree(dir_);
}

result<void> node::start() {
    parts_->host = std::make_unique<fake::host>(
        fake::settings{.config = std::string(R"({"helperDir":")") + GANTRY_HELPER_DIR + "\"}",
                       .node_instance = instance_,
                       .folder = dir_ + "/node"});
    parts_->host->set_log_level(GANTRY_LOG_WARN);
    parts_->add_peers();
    parts_->plugin = std::make_unique<fake::plugin>(*parts_->host, library());
    const auto started = parts_->plugin->start();
    if (!started.ok()) return error{.code = code::internal, .message = started.error.message};
    parts_->runtime = parts_->plugin->capability<gantry_runtime>(GANTRY_RUNTIME);
    parts_->images = parts_->plugin->capability<gantry_image>(GANTRY_IMAGE);
    if (parts_->runtime == nullptr || parts_->images == nullptr)
        return error{.code = code::internal, .message = "the plugin lacks a capability of its descriptor"};
    return {};
}

void node::stop() {
    if (!parts_->plugin) return;
    parts_->plugin.reset();
    for (const auto& fault : parts_->host->misbehaviour()) parts_->misbehaviour.push_back(fault);
    parts_->host.reset();
}

std::vector<std::string> node::misbehaviour() {
    auto all = parts_->misbehaviour;
    if (parts_->host)
        for (const auto& fault : parts_->host->misbehaviour()) all.push_back(fault);
    return all;
}

const gantry_runtime& node::runtime() const { return *parts_->runtime; }
const gantry_image& node::images() const { return *parts_->images; }

node::op node::begin(gantry_op_fn op, const std::string& bytes, const std::vector<int>& fds) {
    fake::message message;
    message.bytes = bytes;
    message.fds = fds;
    return parts_->plugin->begin(op, message);
}

result<std::string> node::wait(op number, std::chrono::nanoseconds limit) {
    const auto outcome = parts_->plugin->wait(number, limit);
    if (outcome.ok()) return outcome.bytes;
    return error{.code = static_cast<code>(outcome.error.code), .message = outcome.error.message};
}

result<std::string> node::call(gantry_op_fn op, const std::string& bytes, const std::vector<int>& fds,
                               std::chrono::nanoseconds timeout) {
    return wait(begin(op, bytes, fds), timeout);
}

bool node::next_item(op number, std::string& bytes, std::chrono::nanoseconds limit) {
    fake::outcome item;
    if (!parts_->plugin->next_item(number, item, limit)) return false;
    bytes = item.bytes;
    return true;
}

void node::cancel(op number) { parts_->plugin->cancel(number); }

void node::fail_network(bool on) { parts_->network_fails = on; }
int node::networks() const {
    const std::lock_guard lock(parts_->mutex);
    return static_cast<int>(parts_->networks.size());
}
int node::network_calls() const { return parts_->calls; }

void node::load_image() {
    const std::string archive = make_busybox_archive(dir_);
    const base::unique_fd fd(::open(archive.c_str(), O_RDONLY | O_CLOEXEC));
    const auto loaded = call(images().load, "{}", {fd.get()});
    if (!loaded) throw std::runtime_error(loaded.error().message);
}

cri::PodSandboxConfig node::pod(const std::string& name) const {
    cri::PodSandboxConfig config;
    config.mutable_metadata()->set_name(name);
    config.mutable_metadata()->set_namespace_("default");
    config.mutable_metadata()->set_uid("uid-" + name);
    config.set_hostname(name);
    config.set_log_directory(dir_ + "/logs/" + name);
    config.mutable_linux()->set_cgroup_parent(cgroup_parent());
    config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_pid(cri::CONTAINER);
    (*config.mutable_labels())["pod"] = name;
    return config;
}

result<std::string> node::run_pod(const cri::PodSandboxConfig& config) {
    cri::RunPodSandboxRequest request;
    *request.mutable_config() = config;
    auto response = call<cri::RunPodSandboxResponse>(runtime().run_pod_sandbox, request);
    if (!response) return std::move(response).error();
    return response->pod_sandbox_id();
}

result<void> node::stop_pod(const std::string& id) {
    cri::StopPodSandboxRequest request;
    request.set_pod_sandbox_id(id);
    auto response = call<cri::StopPodSandboxResponse>(runtime().stop_pod_sandbox, request);
    return response ? result<void>{} : std::move(response).error();
}

result<void> node::remove_pod(const std::string& id) {
    cri::RemovePodSandboxRequest request;
    request.set_pod_sandbox_id(id);
    auto response = call<cri::RemovePodSandboxResponse>(runtime().remove_pod_sandbox, request);
    return response ? result<void>{} : std::move(response).error();
}

cri::PodSandboxStatus node::pod_status(const std::string& id) {
    cri::PodSandboxStatusRequest request;
    request.set_pod_sandbox_id(id);
    const auto response = call<cri::PodSandboxStatusResponse>(runtime().pod_sandbox_status, request);
    return response ? response->status() : cri::PodSandboxStatus{};
}

cri::ContainerConfig node::container(const std::string& name, std::vector<std::string> command) const {
    cri::ContainerConfig config;
    config.mutable_metadata()->set_name(name);
    config.mutable_image()->set_image(image_name);
    *config.mutable_command() = {command.begin(), command.end()};
    config.set_log_path(name + ".log");
    config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_pid(cri::CONTAINER);
    (*config.mutable_labels())["container"] = name;
    return config;
}

result<std::string> node::create(const std::string& pod, const cri::ContainerConfig& config) {
    cri::CreateContainerRequest request;
    request.set_pod_sandbox_id(pod);
    *request.mutable_config() = config;
    auto response = call<cri::CreateContainerResponse>(runtime().create_container, request);
    if (!response) return std::move(response).error();
    return response->container_id();
}

result<void> node::start_container(const std::string& id) {
    cri::StartContainerRequest request;
    request.set_container_id(id);
    auto response = call<cri::StartContainerResponse>(runtime().start_container, request);
    return response ? result<void>{} : std::move(response).error();
}

result<std::string> node::launch(const std::string& pod, const cri::ContainerConfig& config) {
    GANTRY_TRY(auto id, create(pod, config));
    GANTRY_CHECK(start_container(id));
    return id;
}

result<void> node::stop_container(const std::string& id, int seconds) {
    cri::StopContainerRequest request;
    request.set_container_id(id);
    request.set_timeout(seconds);
    auto response = call<cri::StopContainerResponse>(runtime().stop_container, request);
    return response ? result<void>{} : std::move(response).error();
}

result<void> node::remove_container(const std::string& id) {
    cri::RemoveContainerRequest request;
    request.set_container_id(id);
    auto response = call<cri::RemoveContainerResponse>(runtime().remove_container, request);
    return response ? result<void>{} : std::move(response).error();
}

cri::ContainerStatus node::status(const std::string& id) {
    cri::ContainerStatusRequest request;
    request.set_container_id(id);
    const auto response = call<cri::ContainerStatusResponse>(runtime().container_status, request);
    return response ? response->status() : cri::ContainerStatus{};
}

bool node::wait_exit(const std::string& id) {
    return eventually([&] { return status(id).state() == cri::CONTAINER_EXITED; });
}

result<cri::ExecSyncResponse> node::exec(const std::string& id, std::vector<std::string> command, int timeout_seconds) {
    cri::ExecSyncRequest request;
    request.set_container_id(id);
    *request.mutable_cmd() = {command.begin(), command.end()};
    request.set_timeout(timeout_seconds);
    return call<cri::ExecSyncResponse>(runtime().exec_sync, request);
}

std::string node::log(const std::string& id, const std::string& stream) {
    std::istringstream lines(read_text(status(id).log_path()));
    std::string text;
    for (std::string line; std::getline(lines, line);) { // TIME STREAM TAG PAYLOAD
        std::istringstream fields(line);
        std::string time, from, tag, payload;
        fields >> time >> from >> tag;
        fields.get();
        std::getline(fields, payload);
        if (stream.empty() || stream == from) text += payload + (tag == "F" ? "\n" : "");
    }
    return text;
}

std::vector<std::string> node::cgroups(const std::string& container) const {
    std::vector<std::string> found;
    for (const auto& point : mount_points()) {
        const std::string dir = point + cgroup_parent() + "/" + container;
        if (::access(dir.c_str(), F_OK) == 0) found.push_back(dir);
    }
    return found;
}

std::vector<int> node::processes(const std::string& container) const {
    const auto pids = machine().processes(cgroup_parent() + "/" + container);
    return pids ? std::vector<int>(pids->begin(), pids->end()) : std::vector<int>{};
}

std::vector<int> node::supervisors() const {
    const auto pids = machine().processes("/gantry-" + instance_ + "/supervisors");
    return pids ? std::vector<int>(pids->begin(), pids->end()) : std::vector<int>{};
}

std::vector<std::string> node::leftovers() const {
    std::vector<std::string> all;
    std::istringstream mounts(read_text("/proc/self/mountinfo"));
    for (std::string line; std::getline(mounts, line);)
        if (line.find(dir_) != std::string::npos) all.push_back("mount: " + line);
    for (const auto& point : mount_points()) {
        const auto groups = base::list_dir(point + cgroup_parent());
        if (!groups) continue;
        for (const auto& name : *groups)
            if (::access((point + cgroup_parent() + "/" + name + "/cgroup.procs").c_str(), F_OK) == 0)
                all.push_back("cgroup: " + point + cgroup_parent() + "/" + name);
    }
    const auto lives = [](int pid) {
        const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
        return stat.find(") Z ") == std::string::npos && !stat.empty();
    };
    // One that has said farewell takes a moment to exit.
    for (const int pid : supervisors())
        if (!eventually([&] { return !lives(pid); }, 2s)) all.push_back("supervisor: " + std::to_string(pid));
    for (const auto* place : {"/node/run/pods", "/node/state/containers"}) {
        const auto names = base::list_dir(dir_ + place);
        if (!names) continue;
        for (const auto& name : *names) all.push_back("file: " + dir_ + place + "/" + name);
    }
    return all;
}

} // namespace gantry::cri_native::testing
