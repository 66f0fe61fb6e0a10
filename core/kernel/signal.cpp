#include "core/kernel/signal.hpp"

#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace gantry::core {

namespace asio = boost::asio;

struct signal::state {
    explicit state(asio::any_io_executor executor) : timer(std::move(executor)) {}

    asio::steady_timer timer;
    bool notified = false;
};

signal::signal(asio::any_io_executor executor) : state_(std::make_unique<state>(std::move(executor))) {}
signal::~signal() = default;
signal::signal(signal&&) noexcept = default;
signal& signal::operator=(signal&&) noexcept = default;

void signal::notify() {
    state_->notified = true;
    state_->timer.cancel();
}

asio::awaitable<bool> signal::wait() { return wait_until(std::chrono::steady_clock::time_point::max()); }

asio::awaitable<bool> signal::wait_until(std::chrono::steady_clock::time_point until) {
    auto& s = *state_;
    if (std::exchange(s.notified, false)) co_return true;
    // What was cancelled before this wait began would not end it.
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() != asio::cancellation_type::none) co_return false;
    s.timer.expires_at(until);
    boost::system::error_code ec;
    co_await s.timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    const bool notified = std::exchange(s.notified, false);
    co_return notified || !ec;
}

} // namespace gantry::core
