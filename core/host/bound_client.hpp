// plugin_client over a router: from coroutines of the core loop to the lane and back.
#pragma once

#include <memory>
#include <string>

#include "core/host/call.hpp"
#include "core/host/instance.hpp"

namespace gantry::core {

class bound_client final : public plugin_client {
public:
    bound_client(boost::asio::io_context& loop, core::instance& owner, std::string capability)
        : loop_(loop), owner_(owner), capability_(std::move(capability)) {}

    std::string_view instance() const override { return owner_.name(); }
    std::uint32_t flags() const override { return owner_.flags(capability_); }
    boost::asio::awaitable<result<op_reply>> call(op_ref op, op_request request, call_options options) override;

private:
    boost::asio::io_context& loop_;
    core::instance& owner_;
    const std::string capability_;
};

} // namespace gantry::core
