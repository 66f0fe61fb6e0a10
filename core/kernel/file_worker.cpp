#include "core/kernel/file_worker.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace gantry::core {

namespace asio = boost::asio;

struct file_worker::impl {
    explicit impl(asio::any_io_executor executor) : loop(std::move(executor)) {}

    asio::any_io_executor loop;
    asio::thread_pool thread{1};
};

file_worker::file_worker(asio::any_io_executor loop) : impl_(std::make_unique<impl>(std::move(loop))) {}
file_worker::~file_worker() { impl_->thread.join(); }

void file_worker::post(std::function<void()> job) { asio::post(impl_->thread, std::move(job)); }

asio::awaitable<void> file_worker::run(std::function<void()> job) {
    auto start = [this, job = std::move(job)](auto handler) mutable {
        asio::post(impl_->thread, [loop = asio::prefer(impl_->loop, asio::execution::outstanding_work.tracked),
                                   job = std::move(job), handler = std::move(handler)]() mutable {
            job();
            asio::post(loop, std::move(handler));
        });
    };
    co_await asio::async_initiate<const asio::use_awaitable_t<>&, void()>(std::move(start), asio::use_awaitable);
}

} // namespace gantry::core
