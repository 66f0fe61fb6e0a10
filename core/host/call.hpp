// How the core calls plugins: one awaitable per operation, whatever the capability.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/unique_fd.hpp"
#include "gantry/abi/op.h"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// One operation of a capability: where its function pointer lies in the table, and its name for logs and metrics.
struct op_ref {
    std::string_view capability; ///< "gantry.network/1-draft"
    std::string_view name;       ///< "add"
    std::size_t offset;          ///< of the gantry_op_fn in the table
};
/// GANTRY_OP(GANTRY_NETWORK, gantry_network, add)
#define GANTRY_OP(id, table, member) (::gantry::core::op_ref{id, #member, offsetof(table, member)})

struct op_request {
    std::string bytes{};
    std::vector<int> fds{}; ///< borrowed until the op has been taken by the lane; keep them open until the call returns
    std::string key{};    ///< ops of one instance with the same non-empty key run one after another
};

struct op_reply {
    std::string bytes{};
    std::vector<base::unique_fd> fds{};
};

struct op_progress {
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::string what{};
};

struct call_options {
    std::chrono::nanoseconds timeout{std::chrono::seconds(60)}; ///< nanoseconds::max(): no deadline
    std::string pod{};                                          ///< "namespace/name" for logs and explain, or empty
    std::string pod_uid{};
    std::function<void(op_reply)> on_item{};       ///< streaming ops; runs on the core loop
    std::function<void(const op_progress&)> on_progress{}; ///< runs on the core loop
};

/// One bound plugin instance, seen from the core. Used from the core loop only; the object outlives the calls.
/// Cancelling the awaiting coroutine (Asio cancellation, terminal or total) cancels the op.
class plugin_client {
public:
    virtual ~plugin_client() = default;

    /// The instance's name in NodeConfig.
    virtual std::string_view instance() const = 0;
    /// `flags` member of the capability's table (the word after struct_size).
    virtual std::uint32_t flags() const = 0;
    /// Submits the op and waits for its completion, its deadline, or cancellation. Errors of the host: timeout,
    /// cancelled, unavailable (instance stopped, hung or quarantined), unsupported (the table has no such member).
    virtual boost::asio::awaitable<result<op_reply>> call(op_ref op, op_request request, call_options options) = 0;
    /// The same with the default options. (A `call_options{}` written inside a co_await is what GCC 12 miscompiles.)
    boost::asio::awaitable<result<op_reply>> call(op_ref op, op_request request) {
        return call(op, std::move(request), call_options{});
    }
};

} // namespace gantry::core
