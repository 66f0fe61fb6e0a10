#include "plugins/cri-native/helper/load.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <list>
#include <map>

#include "plugins/cri-native/helper/bundle.hpp"
#include "plugins/cri-native/helper/layer_jobs.hpp"
#include "plugins/cri-native/helper/sandbox.hpp"
#include "plugins/cri-native/helper/settle.hpp"
#include "plugins/cri-native/helper/untar.hpp"
#include "plugins/cri-native/helper/worker.hpp"

namespace gantry::cri_helper {

namespace {

constexpr int request_fd = 0; // stays open in every process: it holds the load's lock
constexpr int reply_fd = 1;
constexpr int archive_fd = 3;
constexpr int work_fd = 4;
constexpr int lower_fd = 5;
constexpr std::size_t layers_at_once = 2;
constexpr std::uint64_t largest_file = 256ull << 30; // holes included; what is written counts against the budget
constexpr std::size_t request_limit = 64u << 20;

/// A layer that the store does not have yet.
struct new_layer {
    layer_blob blob;
    std::string dir;                ///< new/K
    std::vector<std::string> below; ///< directories of the layers under it, topmost first
    layer_summary summary;
};

struct loading {
    new_layer* layer;
    worker pump;
    worker unpack;
    result<void> pumped{};
    result<void> unpacked{};
    std::string diff_id{};
    std::string digest{};

    bool running() const { return pump.running() || unpack.running(); }
};

result<std::string> read_request() {
    std::string text;
    char block[65536];
    while (true) {
        const ssize_t n = ::read(request_fd, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sys_error("read the request", errno);
        if (n == 0) return text;
        text.append(block, static_cast<std::size_t>(n));
        if (text.size() > request_limit) return error{.code = code::resource, .message = "the request is too long"};
    }
}

result<budget*> shared_budget(const load_request& request) {
    void* memory = ::mmap(nullptr, sizeof(budget), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return sys_error("mmap", errno);
    auto* usage = new (memory) budget;
    usage->byte_limit = request.bytes;
    usage->inode_limit = request.inodes;
    return usage;
}

error about(const layer_blob& blob, error e) {
    e.message = "layer " + blob.diff_id + ": " + e.message;
    return e;
}

class load_job {
public:
    load_job(load_request request, budget& usage) : request_(std::move(request)), usage_(usage) {}

    result<void> run() {
        GANTRY_TRY(archive_, archive_file::open(archive_fd, "/", request_.bytes));
        GANTRY_TRY(const auto images, read_bundle(archive_, request_));
        for (const auto& image : images) GANTRY_CHECK(plan(image));
        if (!layers_.empty() && ::mkdirat(AT_FDCWD, "/new", 0700) != 0) return sys_error("mkdir new", errno);
        GANTRY_CHECK(unpack_all());
        GANTRY_CHECK(settle_all());
        for (const auto& layer : layers_) {
            const bool anywhere = layer.summary.self_contained();
            report_.send({{"type", "layer"},
                          {"dir", layer.dir},
                          {"diffID", layer.blob.diff_id},
                          {"chain", anywhere ? "" : layer.blob.chain},
                          {"bytes", layer.summary.bytes},
                          {"inodes", layer.summary.inodes},
                          {"opaqueRoot", layer.summary.opaque_root}});
        }
        for (const auto& image : images) {
            base::json::array dirs;
            for (const auto& blob : image.layers) dirs.emplace_back(place_of(blob));
            base::json::array refs(image.refs.begin(), image.refs.end());
            report_.send({{"type", "image"},
                          {"id", image.id},
                          {"refs", std::move(refs)},
                          {"manifestDigest", image.manifest_digest},
                          {"config", image.config},
                          {"layers", std::move(dirs)}});
        }
        return {};
    }

private:
    /// Where the layer of this content and place in a stack is or will be.
    std::string place_of(const layer_blob& blob) const {
        for (const auto& known : request_.known)
            if (known.diff_id == blob.diff_id && (known.chain.empty() || known.chain == blob.chain))
                return "lower/" + known.dir;
        for (const auto& layer : layers_)
            if (layer.blob.diff_id == blob.diff_id && layer.blob.chain == blob.chain) return layer.dir;
        return {};
    }

    result<void> plan(const bundle_image& image) {
        std::vector<std::string> below;
        for (const auto& blob : image.layers) {
            auto place = place_of(blob);
            if (place.empty()) {
                place = "new/" + std::to_string(layers_.size());
                layers_.push_back({blob, place, below, {}});
                queue_.push_back(&layers_.back());
            }
            below.insert(below.begin(), place);
        }
        return {};
    }

    result<void> start_next() {
        new_layer& layer = *queue_.front();
        queue_.pop_front();
        if (::mkdirat(AT_FDCWD, ("/" + layer.dir).c_str(), 0755) != 0) return sys_error("mkdir " + layer.dir, errno);
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return sys_error("pipe", errno);
        base::unique_fd out(ends[1]);
        base::unique_fd in(ends[0]);
        ::fcntl(out.get(), F_SETPIPE_SZ, 1 << 20);
        GANTRY_TRY(auto pump, worker::start({request_fd, archive_.fd(), out.get()}, [&](const reporter& report) {
                       return pump_layer(archive_.fd(), layer.blob.where, layer.blob.diff_id, out.get(), request_,
                                         report);
                   }));
        GANTRY_TRY(auto unpack, worker::start({request_fd, in.get()}, [&](const reporter& report) {
                       return unpack_layer(in.get(), layer.dir, request_, usage_, report);
                   }));
        running_.push_back({&layer, std::move(pump), std::move(unpack)});
        return {};
    }

    result<void> unpack_all() {
        while (!queue_.empty() || !running_.empty()) {
            while (!queue_.empty() && running_.size() < layers_at_once) GANTRY_CHECK(start_next());
            GANTRY_CHECK(wait_for_reports());
            for (auto it = running_.begin(); it != running_.end();) {
                if (it->running()) {
                    ++it;
                    continue;
                }
                GANTRY_CHECK(finish(*it));
                it = running_.erase(it);
            }
        }
        return {};
    }

    result<void> wait_for_reports() {
        std::vector<pollfd> polled{{reply_fd, 0, 0}};
        for (const auto& item : running_)
            for (const auto* process : {&item.pump, &item.unpack})
                if (process->running()) polled.push_back({process->fd(), POLLIN, 0});
        if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return sys_error("poll", errno);
        if ((polled[0].revents & POLLERR) != 0) // the store has gone
            return error{.code = code::cancelled, .message = "nobody reads the replies"};
        const auto ready = [&](int fd) {
            return std::any_of(polled.begin() + 1, polled.end(),
                               [&](const pollfd& p) { return p.fd == fd && p.revents != 0; });
        };
        for (auto& item : running_) {
            if (item.pump.running() && ready(item.pump.fd())) receive(item.pump, item.pumped, item);
            if (item.unpack.running() && ready(item.unpack.fd())) receive(item.unpack, item.unpacked, item);
        }
        return {};
    }

    void receive(worker& process, result<void>& outcome, loading& item) {
        auto received = process.receive([&](const base::json::object& message) -> result<void> {
            if (message.at("type") == "pumped") {
                item.digest = message.at("digest").as_string();
            } else if (message.at("type") == "unpacked") {
                item.diff_id = message.at("diffID").as_string();
                GANTRY_TRY(item.layer->summary, summary_in(message));
            } else {
                report_.send(message);
            }
            return {};
        });
        if (!received && outcome) outcome = std::move(received);
    }

    /// Whose failure came first: a pump that found its reader gone follows the unpacker's, else the unpacker starved.
    result<void> finish(const loading& item) {
        const auto& blob = item.layer->blob;
        if (!item.pumped && item.pumped.error().sys_errno != EPIPE) return about(blob, item.pumped.error());
        if (!item.unpacked) return about(blob, item.unpacked.error());
        if (!item.pumped) return about(blob, item.pumped.error());
        if (!blob.digest.empty() && item.digest != blob.digest)
            return about(blob, {.code = code::invalid,
                                .message = "its blob should have digest " + blob.digest + " and has " + item.digest});
        if (item.diff_id != blob.diff_id)
            return about(blob, {.code = code::invalid, .message = "its content has diffID " + item.diff_id});
        return {};
    }

    /// Bottom-up, in a process of its own like the unpacking.
    result<void> settle_all() {
        const auto open = [](const layer_summary& summary) { return !summary.self_contained(); };
        if (std::none_of(layers_.begin(), layers_.end(), [&](const auto& layer) { return open(layer.summary); }))
            return {};
        GANTRY_TRY(auto process,
                   worker::start({request_fd}, [&](const reporter& report) { return settle_layers(report); }));
        while (process.running())
            GANTRY_CHECK(process.receive([&](const base::json::object& message) -> result<void> {
                for (auto& layer : layers_) {
                    if (message.at("dir") != layer.dir.c_str()) continue;
                    layer.summary.bytes = message.at("bytes").to_number<std::uint64_t>();
                    layer.summary.inodes = message.at("inodes").to_number<std::uint64_t>();
                }
                return {};
            }));
        return {};
    }

    result<void> settle_layers(const reporter& report) {
        GANTRY_CHECK(
            assume(role::unpack, {.trusted_xattr = !request_.user_xattr, .device_nodes = request_.device_nodes}));
        for (auto& layer : layers_) {
            if (layer.summary.self_contained()) continue;
            std::vector<base::unique_fd> roots;
            std::vector<int> below;
            for (const auto& dir : layer.below) {
                roots.emplace_back(::open(("/" + dir).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
                if (!roots.back()) return sys_error("open " + dir, errno);
                below.push_back(roots.back().get());
                if (hides_below(dir)) break;
            }
            base::unique_fd root(::open(("/" + layer.dir).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            if (!root) return sys_error("open " + layer.dir, errno);
            auto settled = settle(root.get(), below, layer.summary, usage_, request_.user_xattr);
            if (!settled) return about(layer.blob, settled.error());
            report.send({{"type", "settled"},
                         {"dir", layer.dir},
                         {"bytes", layer.summary.bytes},
                         {"inodes", layer.summary.inodes}});
        }
        return {};
    }

    bool hides_below(const std::string& dir) const {
        for (const auto& known : request_.known)
            if (dir == "lower/" + known.dir) return known.opaque_root;
        for (const auto& layer : layers_)
            if (dir == layer.dir) return layer.summary.opaque_root;
        return false;
    }

    const load_request request_;
    budget& usage_;
    const reporter report_{reply_fd};
    archive_file archive_;
    std::list<new_layer> layers_; // addresses stay
    std::deque<new_layer*> queue_;
    std::list<loading> running_;
};

result<void> load() {
    GANTRY_TRY(const auto text, read_request());
    GANTRY_TRY(auto request, parse_request(text));
    GANTRY_CHECK(prepare_untar());
    GANTRY_CHECK(confine_to(work_fd, lower_fd));
    GANTRY_CHECK(limit_resources(largest_file));
    GANTRY_CHECK(
        assume(role::coordinate, {.trusted_xattr = !request.user_xattr, .device_nodes = request.device_nodes}));
    GANTRY_TRY(auto* usage, shared_budget(request));
    return load_job(std::move(request), *usage).run();
}

} // namespace

int load_main() {
    ::signal(SIGPIPE, SIG_IGN);
    ::umask(0);
    const reporter report(reply_fd);
    if (const auto done = load(); !done) {
        report.fail(done.error());
        return 1;
    }
    report.send({{"type", "done"}});
    return 0;
}

} // namespace gantry::cri_helper
