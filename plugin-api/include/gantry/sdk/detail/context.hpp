// One instance's side of the ABI: its host services, the callbacks it has registered, its work that is under way.
// Everything the SDK hands out refers to it, so that whatever a plugin keeps too long turns into a no-op, not a crash.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "barrier.hpp"
#include "services.hpp"
#include "unique_function.hpp"

namespace gantry::sdk::detail {

class context;

/// One callback that the host holds a pointer to. Freed when it has run, was revoked, or with the context.
struct callback_base {
    explicit callback_base(context& owner) : owner(owner) {}
    virtual ~callback_base() = default;
    callback_base(const callback_base&) = delete;
    callback_base& operator=(const callback_base&) = delete;
    virtual void drop() noexcept = 0; ///< frees what the callback holds, keeps the shell the host may still point to

    context& owner;
    bool running = false; ///< lane only
    bool revoked = false; ///< lane only
};

template <class Signature>
struct callback final : callback_base {
    callback(context& owner, const char* kind, unique_function<Signature> f)
        : callback_base(owner), kind(kind), f(std::move(f)) {}
    void drop() noexcept override { f = {}; }

    const char* kind;
    unique_function<Signature> f;
};

/// Something open that stop() must end: an operation, a coroutine.
struct stoppable {
    /// Keeps it alive while it is asked to end; false when another thread is freeing it already.
    virtual bool hold(std::shared_ptr<void>&) noexcept { return true; }
    virtual void request_stop() noexcept = 0; ///< asks it to end
    virtual void kill() noexcept {}           ///< frees it; no worker runs any more

protected:
    ~stoppable() = default;
};

class context : public std::enable_shared_from_this<context> {
public:
    explicit context(const gantry_host* host) : host_(host) {}
    ~context() {
        for (auto* one : callbacks_) delete one;
        for (auto* one : retired_) delete one;
    }
    context(const context&) = delete;
    context& operator=(const context&) = delete;

    // ---- life [lane] ----------------------------------------------------------------------------------------------
    result<void> attach() {
        services_ = services(host_);
        if (services_.op == nullptr) return missing_service(GANTRY_SERVICE_OP);
        if (services_.executor == nullptr) return missing_service(GANTRY_SERVICE_EXECUTOR);
        if (services_.config == nullptr) return missing_service(GANTRY_SERVICE_CONFIG);
        open_.store(true, std::memory_order_release);
        return {};
    }
    void request_stop() noexcept { stopping_.request_stop(); }
    /// Tells every open operation and coroutine to end.
    void stop_all() noexcept { for_all_open(&stoppable::request_stop); }
    /// Frees the coroutines that did not end. After wait_for_workers().
    void kill_all() noexcept { for_all_open(&stoppable::kill); }
    void wait_for_workers() {
        std::unique_lock lock(mutex_);
        idle_.wait(lock, [this] { return workers_ == 0; });
    }
    void close() noexcept {
        std::unordered_set<callback_base*> left;
        {
            const std::lock_guard lock(mutex_);
            retired_.swap(callbacks_); // nobody claims them any more
            left = retired_;
        }
        for (auto* one : left) {
            if (is_retired(one)) one->drop(); // dropping one may have freed another
        }
        const std::lock_guard lock(posting_); // a peer's reply that is being posted right now comes first
        open_.store(false, std::memory_order_release);
    }

    // ---- what the rest of the SDK uses [any] ----------------------------------------------------------------------
    bool open() const noexcept { return open_.load(std::memory_order_acquire); }
    bool has(std::string_view service_id) const noexcept { return host_->get(host_, str(service_id)) != nullptr; }
    const services& host() const noexcept { return services_; }
    std::stop_token stop_token() const noexcept { return stopping_.get_token(); }
    std::string_view instance() const noexcept {
        return services_.config != nullptr ? view(services_.config->instance) : std::string_view("?");
    }
    void log(std::int32_t level, std::string_view message) const noexcept {
        if (open() && services_.log != nullptr)
            services_.log->write(services_.log->host, level, str(message), nullptr, 0);
    }
    error closed() const {
        return {.code = code::unavailable,
                .message = "plugin instance \"" + std::string(instance()) +
                           "\" is not running: host services may be used "
                           "from init() until stop() returns"};
    }

    void add(stoppable* one) {
        const std::lock_guard lock(mutex_);
        stoppables_.insert(one);
    }
    void remove(stoppable* one) noexcept {
        const std::lock_guard lock(mutex_);
        stoppables_.erase(one);
    }

    template <class Signature>
    callback<Signature>* keep(const char* kind, unique_function<Signature> f) {
        auto made = std::make_unique<callback<Signature>>(*this, kind, std::move(f));
        const std::lock_guard lock(mutex_);
        callbacks_.insert(made.get());
        return made.release();
    }
    void free(callback_base* one) noexcept {
        {
            const std::lock_guard lock(mutex_);
            callbacks_.erase(one);
            retired_.erase(one);
        }
        delete one;
    }
    /// Takes a callback that runs once from the host's pointer; null when the instance has ended meanwhile.
    template <class Callback>
    static std::unique_ptr<Callback> claim(void* raw) noexcept {
        auto* one = static_cast<Callback*>(raw);
        const std::lock_guard lock(one->owner.mutex_);
        return std::unique_ptr<Callback>(one->owner.callbacks_.erase(one) != 0 ? one : nullptr);
    }

    /// Runs f on the lane, after what is queued there.
    void post(unique_function<void()> f, const char* kind = "a posted function") {
        const std::lock_guard lock(posting_);
        if (!open()) return;
        services_.executor->post(services_.executor->host, &context::run_once, keep<void()>(kind, std::move(f)));
    }
    /// Runs f on a worker thread, where it may block; stop() waits for it.
    result<void> submit(unique_function<void()> f, const char* kind = "a submitted function") {
        if (!open()) return closed();
        auto* one = keep<void()>(kind, std::move(f));
        {
            const std::lock_guard lock(mutex_);
            ++workers_;
        }
        const auto status = services_.executor->submit(services_.executor->host, &context::run_worker, one);
        if (status == GANTRY_OK) return {};
        free(one);
        worker_done();
        return error{.code = code_of(status),
                     .message =
                         "plugin instance \"" + std::string(instance()) + "\": the host's executor takes no more work",
                     .retryable = true};
    }

    /// The body of a callback that runs once and is then freed.
    static void run_once(void* raw) noexcept {
        const auto one = claim<callback<void()>>(raw);
        if (!one) return;
        const auto self = one->owner.shared_from_this();
        self->guarded(one->kind, one->f);
    }
    template <class F, class... Args>
    void guarded(const char* kind, F& f, Args&&... args) noexcept {
        try {
            f(std::forward<Args>(args)...);
        } catch (...) {
            log(GANTRY_LOG_ERROR, thrown(instance(), kind).message);
        }
    }
    /// The body of a callback that stays until it is revoked. [lane]
    template <class Signature, class... Args>
    static void run_each(void* raw, Args... args) noexcept {
        auto* one = static_cast<callback<Signature>*>(raw);
        const auto self = one->owner.shared_from_this();
        if (!one->f || !self->open()) return;
        one->running = true;
        self->guarded(one->kind, one->f, args...);
        one->running = false;
        if (one->revoked) self->free(one);
    }
    /// After the host was told: frees now, or when the callback that is running returns. [lane]
    void revoke(callback_base* one) noexcept {
        if (one->running) {
            one->revoked = true;
        } else {
            free(one);
        }
    }

private:
    bool is_retired(callback_base* one) noexcept {
        const std::lock_guard lock(mutex_);
        return retired_.contains(one);
    }
    void for_all_open(void (stoppable::*act)() noexcept) noexcept {
        std::unordered_set<stoppable*> open;
        {
            const std::lock_guard lock(mutex_);
            open = stoppables_;
        }
        for (auto* one : open) {
            std::shared_ptr<void> alive;
            {
                const std::lock_guard lock(mutex_);
                // Ending one may have ended another, and a worker may be ending this one.
                if (!stoppables_.contains(one) || !one->hold(alive)) continue;
            }
            (one->*act)();
        }
    }
    static void run_worker(void* raw) noexcept {
        auto one = claim<callback<void()>>(raw);
        if (!one) return;
        const auto self = one->owner.shared_from_this();
        self->guarded(one->kind, one->f);
        one.reset(); // what it held is gone before stop() may go on
        self->worker_done();
    }
    void worker_done() noexcept {
        const std::lock_guard lock(mutex_);
        if (--workers_ == 0) idle_.notify_all();
    }

    const gantry_host* host_;
    services services_;
    std::atomic<bool> open_{false};
    std::stop_source stopping_;
    std::mutex posting_;
    std::mutex mutex_;
    std::condition_variable idle_;
    std::unordered_set<callback_base*> callbacks_; ///< that may still run
    std::unordered_set<callback_base*> retired_;   ///< that will not; the host may still point to them
    std::unordered_set<stoppable*> stoppables_;
    std::uint64_t workers_ = 0;
};

} // namespace gantry::sdk::detail
