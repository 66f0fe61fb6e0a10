#include "core/host/bound_client.hpp"

#include <fcntl.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace gantry::core {

namespace asio = boost::asio;

namespace {

constexpr std::size_t most_items = 1024; // past it a stream blocks its plugin's thread
constexpr std::size_t items_a_turn = 64; // then others on the loop have theirs

/// The coroutine that waits, as far as its handler's type matters.
class waiter {
public:
    virtual ~waiter() = default;
    virtual void finish(result<op_reply> outcome) = 0;
};

template <class Handler>
class typed_waiter final : public waiter {
public:
    typed_waiter(asio::io_context& loop, Handler handler)
        : executor_(asio::get_associated_executor(handler, loop.get_executor())), work_(executor_), handler_(std::move(handler)) {}

    void finish(result<op_reply> outcome) override {
        asio::get_associated_cancellation_slot(handler_).clear();
        asio::dispatch(executor_, [handler = std::move(handler_), outcome = std::move(outcome)]() mutable { handler(std::move(outcome)); });
        work_.reset();
    }

private:
    using executor = asio::associated_executor_t<Handler, asio::io_context::executor_type>;
    executor executor_;
    asio::executor_work_guard<executor> work_;
    Handler handler_;
};

/// Brings what the plugin's threads say to the loop, in order: items, then the outcome.
class loop_listener final : public op_listener, public std::enable_shared_from_this<loop_listener> {
public:
    loop_listener(asio::io_context& loop, call_options& options)
        : loop_(loop), streams_(options.on_item), follows_progress_(options.on_progress), on_item_(std::move(options.on_item)),
          on_progress_(std::move(options.on_progress)) {}

    void wait(std::unique_ptr<waiter> waiter) { waiter_ = std::move(waiter); }

    bool streams() const override { return streams_; }

    bool item(op_reply reply) override {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [this] { return items_.size() < most_items || deaf_; });
        if (deaf_) return false;
        items_.push_back(std::move(reply));
        schedule();
        return true;
    }

    void progress(op_progress progress) override {
        if (!follows_progress_) return;
        const std::lock_guard lock(mutex_);
        if (outcome_) return;
        progress_ = std::move(progress);
        schedule();
    }

    void deafen() override {
        const std::lock_guard lock(mutex_);
        deaf_ = true;
        room_.notify_all();
    }

    void completed(result<op_reply> outcome) override {
        const std::lock_guard lock(mutex_);
        deaf_ = true;
        room_.notify_all();
        outcome_ = std::move(outcome);
        schedule();
    }

private:
    void schedule() { // with the lock held
        if (std::exchange(scheduled_, true)) return;
        asio::post(loop_, [self = shared_from_this()] { self->turn(); });
    }

    /// On the loop.
    void turn() {
        std::deque<op_reply> items;
        std::optional<op_progress> progress;
        std::optional<result<op_reply>> outcome;
        {
            const std::lock_guard lock(mutex_);
            for (std::size_t i = 0; i < items_a_turn && !items_.empty(); ++i) {
                items.push_back(std::move(items_.front()));
                items_.pop_front();
            }
            progress = std::exchange(progress_, std::nullopt);
            if (items_.empty()) outcome = std::exchange(outcome_, std::nullopt);
            scheduled_ = false;
            if (!items_.empty()) schedule();
            room_.notify_all();
        }
        if (progress) on_progress_(*progress);
        for (auto& item : items) on_item_(std::move(item));
        if (!outcome) return;
        on_item_ = nullptr; // what they hold belongs to the loop; the plugin's side may let go of this object last
        on_progress_ = nullptr;
        std::exchange(waiter_, nullptr)->finish(*std::move(outcome));
    }

    asio::io_context& loop_;
    const bool streams_, follows_progress_;
    // Of the loop:
    std::function<void(op_reply)> on_item_;
    std::function<void(const op_progress&)> on_progress_;
    std::unique_ptr<waiter> waiter_;

    std::mutex mutex_;
    std::condition_variable room_;
    std::deque<op_reply> items_;
    std::optional<op_progress> progress_;
    std::optional<result<op_reply>> outcome_;
    bool scheduled_ = false;
    bool deaf_ = false;
};

result<std::vector<base::unique_fd>> copies(const std::vector<int>& fds, std::string_view who) {
    std::vector<base::unique_fd> out;
    for (const int fd : fds) {
        base::unique_fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
        if (!copy) return sys_error(std::string(who) + ": dup of request fd " + std::to_string(fd), errno);
        out.push_back(std::move(copy));
    }
    return out;
}

} // namespace

asio::awaitable<result<op_reply>> bound_client::call(op_ref op, op_request request, call_options options) {
    const auto who = owner_.name() + ": " + std::string(op.name);
    if (op.capability != capability_)
        co_return error{.code = code::unsupported, .message = who + ": this client is bound for " + capability_ + ", not " + std::string(op.capability)};
    auto fds = copies(request.fds, who);
    if (!fds) co_return std::move(fds).error();

    const auto listener = std::make_shared<loop_listener>(loop_, options);
    op_submission submission;
    submission.op = op;
    submission.bytes = std::move(request.bytes);
    submission.fds = *std::move(fds);
    submission.key = std::move(request.key);
    submission.timeout = options.timeout;
    submission.pod = std::move(options.pod);
    submission.pod_uid = std::move(options.pod_uid);
    submission.listener = listener;

    auto initiate = [this, &listener, &submission](auto handler) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        listener->wait(std::make_unique<typed_waiter<decltype(handler)>>(loop_, std::move(handler)));
        const auto number = owner_.ops().submit(std::move(submission));
        if (number == 0 || !slot.is_connected()) return;
        slot.assign([this, number](asio::cancellation_type type) {
            if ((type & (asio::cancellation_type::terminal | asio::cancellation_type::total)) != asio::cancellation_type::none)
                owner_.ops().cancel(number);
        });
    };
    co_return co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(result<op_reply>)>(initiate, asio::use_awaitable);
}

} // namespace gantry::core
