#include "core/kernel/node.hpp"

#include <unistd.h>

#include <boost/asio/post.hpp>

#include "core/kernel/kernel_impl.hpp"

namespace gantry::core {

namespace asio = boost::asio;

namespace {

std::string machine_hostname() {
    char name[256] = {};
    ::gethostname(name, sizeof(name) - 1);
    return name;
}

std::map<std::string, std::string> labels_of(const node_options& options) {
    auto labels = options.labels;
    labels.emplace("kubernetes.io/hostname", options.name);
    labels.emplace("kubernetes.io/os", "linux");
#if defined(__x86_64__)
    labels.emplace("kubernetes.io/arch", "amd64");
#elif defined(__aarch64__)
    labels.emplace("kubernetes.io/arch", "arm64");
#endif
    return labels;
}

} // namespace

node::impl::impl(asio::io_context& io, node_options opts, node_clients bound)
    : executor(io.get_executor()), options(std::move(opts)), clients(std::move(bound)), files(executor),
      event_topic(executor),
      events(1024, {.changed = [this](const std::shared_ptr<const kube_event>& e) { event_topic.publish(std::to_string(e->id), e); },
                    .dropped = [this](std::uint64_t id) { event_topic.erase(std::to_string(id)); }}),
      images(executor, events), statuses(executor),
      context{.executor = executor,
              .options = options,
              .files = files,
              .events = events,
              .images = images,
              .statuses = statuses},
      table(clients.pod_sources.size()), loops(executor), pods(executor) {
    context.resources = clients.resources;
    context.hostname = machine_hostname();
    context.machine.seccomp_dir = options.seccomp_dir.empty() ? options.state_dir + "/seccomp" : options.seccomp_dir;
    context.runtime_for = [this](const std::string& handler) {
        const auto it = slots.find(handler);
        return it == slots.end() ? nullptr : it->second;
    };
    context.admit = [this](const model::pod& pod) { return admit_pod(pod); };
    // The worker is still running when it says so.
    context.finished = [this](const std::string& uid) {
        asio::post(executor, [this, uid] { worker_finished(uid); });
    };
    admission.node_name = options.name;
    admission.labels = labels_of(options);
    admission.allowed_unsafe_sysctls = options.allowed_unsafe_sysctls;

    std::map<plugin_client*, std::shared_ptr<runtime_slot>> by_instance;
    for (const auto& binding : clients.runtimes) {
        auto& slot = by_instance[binding.runtime];
        if (!slot) {
            slot = std::make_shared<runtime_slot>();
            slot->runtime = binding.runtime;
            slot->image = binding.image;
            runtime_feed::hooks hooks;
            hooks.known = [this, s = slot.get()] { return known(*s); };
            hooks.listed = [this, s = std::weak_ptr(slot)](found_pods found, std::vector<std::string> vanished) {
                if (const auto alive = s.lock()) listed(alive, std::move(found), vanished);
            };
            hooks.event = [this](const runtime_event& event) { runtime_changed(event); };
            runtimes.push_back(std::make_unique<runtime_feed>(executor, slot, std::move(hooks)));
        }
        slots.emplace(binding.handler, slot);
    }
    for (std::size_t i = 0; i < clients.pod_sources.size(); ++i) {
        source_feed::hooks hooks;
        hooks.begin = [this, i] { table.begin_listing(i); };
        hooks.set = [this, i](std::shared_ptr<const model::pod> pod) {
            const auto uid = pod->metadata.uid;
            table.set(i, std::move(pod));
            source_changed(uid);
        };
        hooks.remove = [this, i](const std::string& uid) {
            if (table.erase(i, uid)) source_changed(uid);
        };
        hooks.synced = [this, i] {
            for (const auto& uid : table.end_listing(i)) source_changed(uid);
            if (!stopping) loops.add(sweep());
        };
        sources.push_back(std::make_unique<source_feed>(executor, *clients.pod_sources[i], std::move(hooks)));
    }
}

asio::awaitable<result<void>> node::impl::start() {
    if (auto done = co_await read_state(); !done) co_return std::move(done).error();
    loops.add(boot());
    loops.add(audit());
    co_return result<void>();
}

asio::awaitable<void> node::impl::stop() {
    stopping = true;
    loops.cancel();
    for (const auto& [uid, worker] : workers) worker->stop();
    co_await loops.join();
    co_await pods.join();
    co_await images.stop();
}

node::node(asio::io_context& io, node_options options, node_clients clients)
    : impl_(std::make_unique<impl>(io, std::move(options), std::move(clients))) {}
node::~node() = default;

asio::awaitable<result<void>> node::start() { return impl_->start(); }
asio::awaitable<void> node::stop() { return impl_->stop(); }

} // namespace gantry::core
