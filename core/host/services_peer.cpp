// gantry.peer/1: one plugin calls another, through its router like everybody else.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "core/host/abi_copy.hpp"
#include "core/host/barrier.hpp"
#include "core/host/current_call.hpp"
#include "core/host/op_names.hpp"
#include "core/host/services.hpp"

namespace gantry::core {

namespace {

/// Hands the outcome to the caller's function, on the caller's lane.
class peer_listener final : public op_listener {
public:
    peer_listener(instance& caller, std::uint64_t parent, gantry_reply_fn fn, void* context)
        : caller_(caller), parent_(parent), fn_(fn), context_(context) {}

    void completed(result<op_reply> outcome) override {
        auto shared = std::make_shared<result<op_reply>>(std::move(outcome)); // std::function wants copies
        caller_.post("reply", parent_, [fn = fn_, context = context_, shared] {
            gantry_reply reply{.struct_size = sizeof(gantry_reply), .fd_count = 0, .fds = nullptr, .bytes = {nullptr, 0}, .error = nullptr};
            if (!*shared) {
                const auto lent = lend_error(shared->error());
                reply.error = &lent;
                return fn(context, &reply);
            }
            std::vector<std::int32_t> fds;
            for (const auto& fd : (*shared)->fds) fds.push_back(fd.get());
            reply.fds = fds.data();
            reply.fd_count = static_cast<std::uint32_t>(fds.size());
            reply.bytes = borrow((*shared)->bytes);
            fn(context, &reply);
        });
    }

private:
    instance& caller_;
    const std::uint64_t parent_;
    const gantry_reply_fn fn_;
    void* const context_;
};

std::optional<std::size_t> offset_in(const instance& target, std::string_view capability, std::string_view op) {
    if (const auto known = offset_of_op(capability, op)) return known;
    const auto& own = target.chosen().plugin.operations;
    const auto list = own.find(std::string(capability));
    if (list == own.end()) return std::nullopt;
    const auto found = std::find(list->second.begin(), list->second.end(), op);
    if (found == list->second.end()) return std::nullopt;
    constexpr std::size_t head = 2 * sizeof(std::uint32_t); // struct_size and flags
    return head + static_cast<std::size_t>(found - list->second.begin()) * sizeof(gantry_op_fn);
}

std::chrono::nanoseconds time_until(std::int64_t deadline_ns) {
    if (deadline_ns == INT64_MAX) return std::chrono::nanoseconds::max();
    return std::chrono::nanoseconds(deadline_ns - std::chrono::steady_clock::now().time_since_epoch().count());
}

result<void> start_call(instance& caller, gantry_str capability, gantry_str op, const gantry_request* request, std::int64_t deadline_ns,
                        gantry_reply_fn fn, void* context) {
    const std::string id(view(capability));
    const std::string name(view(op));
    const auto who = caller.name() + " calls " + id + " " + name;
    const auto& peers = caller.chosen().plugin.peers;
    if (std::find(peers.begin(), peers.end(), id) == peers.end())
        return error{.code = code::invalid, .message = who + ": its descriptor does not list " + id + " under requires"};
    if (!fn || !request || request->struct_size < sizeof(gantry_request))
        return error{.code = code::invalid, .message = who + ": request or reply function is missing"};
    auto* target = caller.node().peer(caller, id);
    if (!target) return error{.code = code::unavailable, .message = who + ": no plugin is bound for it"};
    const auto offset = offset_in(*target, id, name);
    if (!offset) return error{.code = code::unsupported, .message = who + ": this capability has no such operation"};

    op_submission submission;
    submission.op = {.capability = id, .name = name, .offset = *offset};
    submission.bytes = view(request->bytes);
    submission.key = view(request->key);
    for (std::uint32_t i = 0; request->fds && i < request->fd_count; ++i) {
        base::unique_fd copy(::fcntl(request->fds[i], F_DUPFD_CLOEXEC, 0));
        if (!copy) return sys_error(who + ": dup of request fd " + std::to_string(request->fds[i]), errno);
        submission.fds.push_back(std::move(copy));
    }
    submission.timeout = time_until(deadline_ns);
    submission.caller = caller.name();
    const auto& call = current_call::get();
    const auto parent = call.instance == caller.interned_name() ? call.op : 0;
    if (parent != 0) {
        const auto pod = caller.ops().pod_of(parent);
        submission.pod = pod.pod;
        submission.pod_uid = pod.pod_uid;
    }
    submission.listener = std::make_shared<peer_listener>(caller, parent, fn, context);
    target->ops().submit(std::move(submission));
    return {};
}

gantry_status call(const void* host, gantry_str capability, gantry_str op, const gantry_request* request, std::int64_t deadline_ns,
                   gantry_reply_fn fn, void* context, gantry_error_sink* error) noexcept {
    return guarded(host, "peer.call", gantry_status{GANTRY_RESOURCE}, [&](instance& caller) -> gantry_status {
        const auto started = start_call(caller, capability, op, request, deadline_ns, fn, context);
        if (started) return GANTRY_OK;
        report(error, started.error());
        return static_cast<gantry_status>(started.error().code);
    });
}

} // namespace

gantry_peer_service make_peer_service(instance& owner) {
    return {.struct_size = sizeof(gantry_peer_service), .reserved = 0, .host = &owner, .call = call};
}

} // namespace gantry::core
