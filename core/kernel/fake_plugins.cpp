#include "core/kernel/fake_plugins.hpp"

#include <algorithm>
#include <chrono>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace gantry::core::testing {

namespace asio = boost::asio;
namespace cri = ::runtime::v1;

asio::awaitable<result<op_reply>> fake_plugin::call(op_ref op, op_request request, call_options options) {
    const std::string name(op.name);
    ++counts_[name];
    co_await asio::post(executor_, asio::use_awaitable);
    if (const auto f = failures_.find(name); f != failures_.end() && f->second.second > 0) {
        --f->second.second;
        co_return f->second.first;
    }
    if (held_.contains(name) || streams.contains(name)) {
        open_call self{name, signal(executor_), std::move(options.on_item), false};
        open_.push_back(&self);
        bool woken = true;
        while (woken && !self.done) woken = co_await self.turn.wait();
        std::erase(open_, &self);
        if (!self.done) co_return error{.code = code::cancelled, .message = name + ": cancelled"};
        if (streams.contains(name)) co_return error{.code = code::unavailable, .message = name + ": stream ended"};
    }
    const auto handler = on.find(name);
    if (handler == on.end()) co_return error{.code = code::unsupported, .message = name + ": not offered"};
    auto reply = handler->second(request.bytes);
    if (!reply) co_return std::move(reply).error();
    op_reply out;
    out.bytes = *std::move(reply);
    co_return out;
}

int fake_plugin::count(const std::string& op) const {
    const auto it = counts_.find(op);
    return it == counts_.end() ? 0 : it->second;
}

void fake_plugin::release(const std::string& op) {
    held_.erase(op);
    for (auto* c : open_)
        if (c->op == op) {
            c->done = true;
            c->turn.notify();
        }
}

bool fake_plugin::holding(const std::string& op) const {
    return std::any_of(open_.begin(), open_.end(), [&](const open_call* c) { return c->op == op; });
}

void fake_plugin::send(const std::string& op, const std::string& bytes) {
    asio::post(executor_, [this, op, bytes] {
        for (auto* c : open_)
            if (c->op == op && c->on_item) {
                op_reply item;
                item.bytes = bytes;
                c->on_item(std::move(item));
            }
    });
}

void fake_plugin::end_stream(const std::string& op) {
    for (auto* c : open_)
        if (c->op == op) {
            c->done = true;
            c->turn.notify();
        }
}

bool fake_plugin::streaming(const std::string& op) const { return holding(op); }

namespace {

template <class T>
T parse(const std::string& bytes) {
    T out;
    out.ParseFromString(bytes);
    return out;
}

bool matches(const google::protobuf::Map<std::string, std::string>& labels,
             const google::protobuf::Map<std::string, std::string>& selector) {
    return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
        const auto it = labels.find(wanted.first);
        return it != labels.end() && it->second == wanted.second;
    });
}

} // namespace

std::int64_t fake_runtime::now() const { return std::chrono::system_clock::now().time_since_epoch().count(); }

fake_runtime::fake_runtime(asio::any_io_executor executor) : fake_plugin(std::move(executor), "native") {
    streams.insert("get_container_events");
    cri::Image& image = images["busybox:1"];
    image.set_id("sha256:busybox");
    image.add_repo_digests("busybox@sha256:1");

    on["version"] = [](const std::string&) {
        cri::VersionResponse out;
        out.set_runtime_name("fake");
        return out.SerializeAsString();
    };
    on["image_status"] = [this](const std::string& bytes) -> result<std::string> {
        cri::ImageStatusResponse out;
        const auto it = images.find(parse<cri::ImageStatusRequest>(bytes).image().image());
        if (it != images.end()) *out.mutable_image() = it->second;
        return out.SerializeAsString();
    };
    on["run_pod_sandbox"] = [this](const std::string& bytes) -> result<std::string> {
        const auto request = parse<cri::RunPodSandboxRequest>(bytes);
        sandbox_requests.push_back(request);
        const auto id = "sandbox-" + std::to_string(++last_id_);
        auto& s = sandboxes[id];
        s.set_id(id);
        *s.mutable_metadata() = request.config().metadata();
        *s.mutable_labels() = request.config().labels();
        s.set_created_at(now());
        s.mutable_network()->set_ip("10.88.0." + std::to_string(last_id_));
        cri::RunPodSandboxResponse out;
        out.set_pod_sandbox_id(id);
        return out.SerializeAsString();
    };
    on["pod_sandbox_status"] = [this](const std::string& bytes) -> result<std::string> {
        const auto it = sandboxes.find(parse<cri::PodSandboxStatusRequest>(bytes).pod_sandbox_id());
        if (it == sandboxes.end()) return error{.code = code::not_found, .message = "no such sandbox"};
        cri::PodSandboxStatusResponse out;
        *out.mutable_status() = it->second;
        return out.SerializeAsString();
    };
    on["list_pod_sandbox"] = [this](const std::string& bytes) -> result<std::string> {
        const auto request = parse<cri::ListPodSandboxRequest>(bytes);
        cri::ListPodSandboxResponse out;
        for (const auto& [id, s] : sandboxes) {
            if (!matches(s.labels(), request.filter().label_selector())) continue;
            auto& item = *out.add_items();
            item.set_id(id);
            *item.mutable_metadata() = s.metadata();
            item.set_state(s.state());
            *item.mutable_labels() = s.labels();
        }
        return out.SerializeAsString();
    };
    on["create_container"] = [this](const std::string& bytes) -> result<std::string> {
        const auto request = parse<cri::CreateContainerRequest>(bytes);
        created.push_back(request.config());
        const auto id = request.config().metadata().name() + "-" + std::to_string(++last_id_);
        auto& c = containers[id];
        c.sandbox = request.pod_sandbox_id();
        c.status.set_id(id);
        *c.status.mutable_metadata() = request.config().metadata();
        c.status.mutable_image()->set_image(request.config().image().user_specified_image());
        c.status.set_image_ref("busybox@sha256:1");
        c.status.set_created_at(now());
        *c.status.mutable_labels() = request.config().labels();
        *c.status.mutable_annotations() = request.config().annotations();
        emit(c.sandbox, id, cri::CONTAINER_CREATED_EVENT);
        cri::CreateContainerResponse out;
        out.set_container_id(id);
        return out.SerializeAsString();
    };
    on["start_container"] = [this](const std::string& bytes) -> result<std::string> {
        auto& c = containers.at(parse<cri::StartContainerRequest>(bytes).container_id());
        if (!next_start_fails.empty()) {
            const auto message = std::exchange(next_start_fails, {});
            c.status.set_message(message);
            finish(c, 128, "StartError");
            return error{.code = code::invalid, .message = message};
        }
        c.status.set_state(cri::CONTAINER_RUNNING);
        c.status.set_started_at(now());
        emit(c.sandbox, c.status.id(), cri::CONTAINER_STARTED_EVENT);
        return cri::StartContainerResponse().SerializeAsString();
    };
    on["stop_container"] = [this](const std::string& bytes) -> result<std::string> {
        const auto request = parse<cri::StopContainerRequest>(bytes);
        stop_timeouts.push_back(request.timeout());
        const auto it = containers.find(request.container_id());
        if (it == containers.end()) return error{.code = code::not_found, .message = "no such container"};
        if (it->second.status.state() == cri::CONTAINER_RUNNING) finish(it->second, 0, "Completed");
        return cri::StopContainerResponse().SerializeAsString();
    };
    on["remove_container"] = [this](const std::string& bytes) -> result<std::string> {
        containers.erase(parse<cri::RemoveContainerRequest>(bytes).container_id());
        return cri::RemoveContainerResponse().SerializeAsString();
    };
    on["stop_pod_sandbox"] = [this](const std::string& bytes) -> result<std::string> {
        const auto it = sandboxes.find(parse<cri::StopPodSandboxRequest>(bytes).pod_sandbox_id());
        if (it == sandboxes.end()) return error{.code = code::not_found, .message = "no such sandbox"};
        it->second.set_state(cri::SANDBOX_NOTREADY);
        for (auto& [id, c] : containers)
            if (c.sandbox == it->first && c.status.state() == cri::CONTAINER_RUNNING) finish(c, 137, "Error");
        return cri::StopPodSandboxResponse().SerializeAsString();
    };
    on["remove_pod_sandbox"] = [this](const std::string& bytes) -> result<std::string> {
        const auto id = parse<cri::RemovePodSandboxRequest>(bytes).pod_sandbox_id();
        sandboxes.erase(id);
        std::erase_if(containers, [&](const auto& c) { return c.second.sandbox == id; });
        return cri::RemovePodSandboxResponse().SerializeAsString();
    };
    on["list_containers"] = [this](const std::string& bytes) -> result<std::string> {
        const auto request = parse<cri::ListContainersRequest>(bytes);
        cri::ListContainersResponse out;
        for (const auto& [id, c] : containers) {
            if (!matches(c.status.labels(), request.filter().label_selector())) continue;
            auto& item = *out.add_containers();
            item.set_id(id);
            item.set_pod_sandbox_id(c.sandbox);
            *item.mutable_metadata() = c.status.metadata();
            item.set_state(c.status.state());
            *item.mutable_labels() = c.status.labels();
        }
        return out.SerializeAsString();
    };
    on["container_status"] = [this](const std::string& bytes) -> result<std::string> {
        const auto it = containers.find(parse<cri::ContainerStatusRequest>(bytes).container_id());
        if (it == containers.end()) return error{.code = code::not_found, .message = "no such container"};
        cri::ContainerStatusResponse out;
        *out.mutable_status() = it->second.status;
        return out.SerializeAsString();
    };
}

void fake_runtime::emit(const std::string& sandbox_id, const std::string& id, cri::ContainerEventType type) {
    if (!send_events) return;
    cri::ContainerEventResponse event;
    event.set_container_id(id);
    event.set_container_event_type(type);
    if (!name_only_events) {
        *event.mutable_pod_sandbox_status() = sandboxes.at(sandbox_id);
        for (const auto& [cid, c] : containers)
            if (c.sandbox == sandbox_id) *event.add_containers_statuses() = c.status;
    }
    send("get_container_events", event.SerializeAsString());
}

void fake_runtime::finish(container& c, int code, const std::string& reason) {
    c.status.set_state(cri::CONTAINER_EXITED);
    c.status.set_exit_code(code);
    c.status.set_reason(!reason.empty() ? reason : code == 0 ? "Completed" : "Error");
    c.status.set_finished_at(now());
    emit(c.sandbox, c.status.id(), cri::CONTAINER_STOPPED_EVENT);
}

void fake_runtime::exit(const std::string& container_name, int code, const std::string& reason) {
    for (auto& [id, c] : containers)
        if (c.status.metadata().name() == container_name && c.status.state() == cri::CONTAINER_RUNNING)
            return finish(c, code, reason);
}

const fake_runtime::container* fake_runtime::newest(const std::string& container_name) const {
    const container* out = nullptr;
    for (const auto& [id, c] : containers)
        if (c.status.metadata().name() == container_name &&
            (out == nullptr || c.status.metadata().attempt() >= out->status.metadata().attempt()))
            out = &c;
    return out;
}

int fake_runtime::running() const {
    return static_cast<int>(std::count_if(containers.begin(), containers.end(), [](const auto& c) {
        return c.second.status.state() == cri::CONTAINER_RUNNING;
    }));
}

} // namespace gantry::core::testing
