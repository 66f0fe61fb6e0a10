// A plugin for the host's tests: it does what the request, or its configuration, says. Written against the C ABI alone.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "gantry/abi/plugin.h"

namespace {

constexpr auto capability_id = "com.acme.mischief/1";

GANTRY_DESCRIPTOR(note, {"id": "com.acme.mischief", "name": "mischief", "version": "1.0.0", "capabilities": ["com.acme.mischief/1"],
    "requires": ["com.acme.mischief/1"], "operations": {"com.acme.mischief/1": ["run", "watch"]}, "maxConcurrency": 8,
    "config": {"type": "object", "additionalProperties": false, "properties": {"init": {"type": "string", "default": ""},
    "activate": {"type": "string", "default": ""}, "stop": {"type": "string", "default": ""}}}})

std::string_view view(gantry_str text) { return text.p ? std::string_view(text.p, text.n) : std::string_view(); }
gantry_str borrow(std::string_view text) { return {text.data(), text.size()}; }

struct instance {
    const gantry_host* host;
    gantry_plugin table;
    const gantry_op_service* op = nullptr;
    std::string config;

    template <class T>
    const T* service(const char* id) const {
        return static_cast<const T*>(host->get(host, borrow(id)));
    }
};

void answer(const instance& self, gantry_op op, std::string_view bytes) {
    const gantry_reply reply{sizeof reply, 0, nullptr, borrow(bytes), nullptr};
    self.op->complete(self.op->host, op, &reply);
}

void refuse(const instance& self, gantry_op op, gantry_status code, std::string_view message) {
    gantry_error error{};
    error.struct_size = sizeof error;
    error.code = code;
    error.message = borrow(message);
    const gantry_reply reply{sizeof reply, 0, nullptr, {nullptr, 0}, &error};
    self.op->complete(self.op->host, op, &reply);
}

[[gnu::noinline]] int fall(int depth) { // NOLINT: without end on purpose
    volatile char frame[4096];
    frame[0] = static_cast<char>(depth);
    return depth < 0 ? 0 : fall(depth + 1) + frame[0];
}

void crash() {
    volatile int* nowhere = nullptr;
    *nowhere = 1; // NOLINT
}

/// What needs no operation; false for other words.
bool misbehave(std::string_view what) {
    if (what == "segv") crash();
    else if (what == "abort") std::abort();
    else if (what == "exit") std::exit(0);
    else if (what == "stack") fall(0);
    else if (what == "thread-segv") std::thread(crash).join();
    else if (what == "fork") { if (::fork() == 0) ::_exit(0); }
    else if (what == "umask") ::umask(0);
    else if (what == "chdir") { if (::chdir("/proc") != 0) std::abort(); }
    else if (what == "setenv") ::setenv("GANTRY_MISCHIEF", "1", 1);
    else if (what == "netns") { if (::unshare(CLONE_NEWNET) != 0) std::abort(); }
    else if (what == "sigmask") {
        sigset_t none;
        ::sigemptyset(&none);
        ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    } else if (what.starts_with("sleep-")) ::usleep(static_cast<useconds_t>(std::atoi(std::string(what.substr(6)).c_str())) * 1000);
    else if (what == "pause") ::pause();
    else return false;
    return true;
}

/// An operation that another thread or a callback completes.
struct pending {
    instance* self;
    gantry_op op;
    std::string what;
    int fd = -1;
    std::uint64_t handle = 0;
};

void on_reply(void* context, const gantry_reply* reply) {
    const std::unique_ptr<pending> p(static_cast<pending*>(context));
    if (reply->error) refuse(*p->self, p->op, reply->error->code, "peer: " + std::string(view(reply->error->message)));
    else answer(*p->self, p->op, "peer says " + std::string(view(reply->bytes)));
}

gantry_status call_peer(instance& self, std::string_view bytes, gantry_op op) {
    const auto* peer = self.service<gantry_peer_service>(GANTRY_SERVICE_PEER);
    auto* p = new pending{&self, op, {}};
    const gantry_request request{sizeof request, 0, nullptr, {nullptr, 0}, borrow(bytes)};
    const auto status = peer->call(peer->host, borrow(capability_id), borrow("run"), &request, self.op->deadline_ns(self.op->host, op), on_reply, p, nullptr);
    if (status == GANTRY_OK) return status;
    delete p;
    refuse(self, op, status, "no peer");
    return GANTRY_OK;
}

void on_exit(void* context, int32_t wait_status, int32_t timed_out) {
    const std::unique_ptr<pending> p(static_cast<pending*>(context));
    answer(*p->self, p->op, "status " + std::to_string(wait_status) + (timed_out ? " timed out" : ""));
}

gantry_status start_helper(instance& self, std::string_view script, gantry_op op) {
    const auto* exec = self.service<gantry_exec_service>(GANTRY_SERVICE_EXEC);
    const gantry_str argv[] = {borrow("/bin/sh"), borrow("-c"), borrow(script)};
    const gantry_str envp[] = {borrow("PATH=/usr/bin:/bin")};
    const gantry_exec_request request{sizeof request, 3, argv, envp, 1, 0, nullptr, self.op->deadline_ns(self.op->host, op) - 500'000'000};
    auto* p = new pending{&self, op, {}};
    const auto pid = exec->spawn(exec->host, &request, on_exit, p);
    if (pid > 0) return GANTRY_OK;
    delete p;
    refuse(self, op, GANTRY_INTERNAL, std::strerror(static_cast<int>(-pid)));
    return GANTRY_OK;
}

gantry_status run(void* context, const gantry_request* request, gantry_op op) {
    auto& self = *static_cast<instance*>(context);
    const std::string what(view(request->bytes));
    const auto later = [&](const auto& start) {
        start(new pending{&self, op, what});
        return GANTRY_OK;
    };
    constexpr auto complete = [](void* c) {
        const std::unique_ptr<pending> p(static_cast<pending*>(c));
        answer(*p->self, p->op, p->what);
    };
    if (what == "never") return GANTRY_OK;
    if (what == "busy") return GANTRY_BUSY;
    if (what == "twice") answer(self, op, what);
    if (what == "fail") return refuse(self, op, GANTRY_NOT_FOUND, "no such thing"), GANTRY_OK;
    if (what == "silent-failure") return refuse(self, op, GANTRY_INTERNAL, ""), GANTRY_OK;
    if (what == "worker")
        return later([&](pending* p) {
            const auto* executor = self.service<gantry_executor_service>(GANTRY_SERVICE_EXECUTOR);
            executor->submit(executor->host, complete, p);
        });
    if (what == "worker-segv")
        return later([&](pending* p) {
            const auto* executor = self.service<gantry_executor_service>(GANTRY_SERVICE_EXECUTOR);
            executor->submit(executor->host, [](void*) { crash(); }, p);
        });
    if (what == "timer")
        return later([&](pending* p) {
            const auto* timer = self.service<gantry_timer_service>(GANTRY_SERVICE_TIMER);
            timer->after(timer->host, 1'000'000, complete, p);
        });
    if (what == "fd")
        return later([&](pending* p) {
            const auto* fds = self.service<gantry_fd_service>(GANTRY_SERVICE_FD);
            p->fd = ::eventfd(1, EFD_CLOEXEC);
            p->handle = fds->watch(fds->host, p->fd, 1 /* EPOLLIN */, [](void* c, int32_t, uint32_t) {
                auto* p = static_cast<pending*>(c);
                const auto* fds = p->self->service<gantry_fd_service>(GANTRY_SERVICE_FD);
                fds->unwatch(fds->host, p->handle);
                ::close(p->fd);
                answer(*p->self, p->op, p->what);
                delete p;
            }, p);
        });
    if (what.starts_with("peer ")) return call_peer(self, std::string_view(what).substr(5), op);
    if (what.starts_with("sh ")) return start_helper(self, std::string_view(what).substr(3), op);
    if (what == "config") return answer(self, op, self.config), GANTRY_OK;
    if (what == "log") {
        const auto* log = self.service<gantry_log_service>(GANTRY_SERVICE_LOG);
        const gantry_field fields[] = {{borrow("colour"), borrow("blue")}};
        log->write(log->host, GANTRY_LOG_WARN, borrow("said so"), fields, 1);
    }
    if (what.starts_with("put ")) {
        const auto* state = self.service<gantry_state_service>(GANTRY_SERVICE_STATE);
        state->put(state->host, borrow("key"), borrow(std::string_view(what).substr(4)), nullptr);
    }
    if (what == "get") {
        const auto* state = self.service<gantry_state_service>(GANTRY_SERVICE_STATE);
        std::string value = "nothing";
        state->get(state->host, borrow("key"), [](void* out, gantry_str v) { *static_cast<std::string*>(out) = view(v); }, &value);
        return answer(self, op, value), GANTRY_OK;
    }
    if (what.starts_with("publish ")) {
        const auto* events = self.service<gantry_events_service>(GANTRY_SERVICE_EVENTS);
        events->publish(events->host, borrow("mischief"), borrow("key"), borrow(std::string_view(what).substr(8)));
    }
    if (what == "await-event")
        return later([&](pending* p) {
            const auto* events = self.service<gantry_events_service>(GANTRY_SERVICE_EVENTS);
            p->handle = events->subscribe(events->host, borrow("mischief"), [](void* c, gantry_str, gantry_str, gantry_str bytes) {
                auto* p = static_cast<pending*>(c);
                const auto* events = p->self->service<gantry_events_service>(GANTRY_SERVICE_EVENTS);
                events->unsubscribe(events->host, p->handle);
                answer(*p->self, p->op, view(bytes));
                delete p;
            }, p);
        });
    if (what == "pass-fd") {
        const gantry_reply reply{sizeof reply, request->fd_count, request->fds, {nullptr, 0}, nullptr};
        self.op->complete(self.op->host, op, &reply);
        return GANTRY_OK;
    }
    misbehave(what);
    answer(self, op, what);
    return GANTRY_OK;
}

/// Sends items 0, 1, ... from a worker until nobody listens, then completes with their number.
gantry_status watch(void* context, const gantry_request*, gantry_op op) {
    auto& self = *static_cast<instance*>(context);
    const auto* executor = self.service<gantry_executor_service>(GANTRY_SERVICE_EXECUTOR);
    return executor->submit(executor->host, [](void* c) {
        const std::unique_ptr<pending> p(static_cast<pending*>(c));
        int sent = 0;
        for (;; ++sent) {
            const auto text = std::to_string(sent);
            const gantry_reply item{sizeof item, 0, nullptr, borrow(text), nullptr};
            if (p->self->op->item(p->self->op->host, p->op, &item) != GANTRY_OK) break;
        }
        answer(*p->self, p->op, std::to_string(sent));
    }, new pending{&self, op, {}});
}

struct table {
    std::uint32_t struct_size, flags;
    gantry_op_fn run, watch;
};
constexpr table ops{sizeof(table), 0, run, watch};

std::string configured(const instance& self, std::string_view key) {
    const auto at = self.config.find("\"" + std::string(key) + "\":\"");
    if (at == std::string::npos) return {};
    const auto begin = at + key.size() + 4;
    return self.config.substr(begin, self.config.find('"', begin) - begin);
}

gantry_status perform(const instance& self, std::string_view key, gantry_error_sink* sink) {
    const auto what = configured(self, key);
    if (what != "fail") return misbehave(what), GANTRY_OK;
    gantry_error error{};
    error.struct_size = sizeof error;
    error.code = GANTRY_UNAVAILABLE;
    error.message = borrow("the device is not there");
    sink->set(sink, &error);
    return GANTRY_UNAVAILABLE;
}

gantry_status init(void* context, gantry_error_sink* sink) {
    auto& self = *static_cast<instance*>(context);
    self.op = self.service<gantry_op_service>(GANTRY_SERVICE_OP);
    self.config = view(self.service<gantry_config_service>(GANTRY_SERVICE_CONFIG)->json);
    const auto* metrics = self.service<gantry_metrics_service>(GANTRY_SERVICE_METRICS);
    metrics->record(metrics->host, metrics->define(metrics->host, GANTRY_METRIC_COUNTER, borrow("pranks"), borrow("Pranks played.")), borrow("init"), 1);
    return perform(self, "init", sink);
}

const gantry_plugin* create(uint32_t, const gantry_host* host, gantry_error_sink*) {
    auto* self = new instance{host, {}, nullptr, {}};
    auto& t = self->table;
    t.struct_size = sizeof t;
    t.self = self;
    t.init = init;
    t.capability = [](void*, gantry_str id) -> const void* { return view(id) == capability_id ? &ops : nullptr; };
    t.activate = [](void* c, gantry_error_sink* sink) { return perform(*static_cast<instance*>(c), "activate", sink); };
    t.stop = [](void* c) { misbehave(configured(*static_cast<instance*>(c), "stop")); };
    t.destroy = [](void* c) { delete static_cast<instance*>(c); };
    return &t;
}

} // namespace

extern "C" GANTRY_EXPORT const gantry_plugin_entry* gantry_plugin_main(void) {
    static const gantry_plugin_entry entry{sizeof entry, GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, 1, 0, [](uint32_t) { return note_descriptor(); }, create};
    return &entry;
}
