// Bodies of sdk::host.
#pragma once

#include "../host.hpp"

namespace gantry::sdk {

inline result<void> host::require(std::initializer_list<std::string_view> service_ids) const {
    for (const auto id : service_ids) {
        if (!context_->has(id)) return detail::missing_service(id);
    }
    return {};
}

inline bool host::enabled(level at) const noexcept {
    const auto* service = context_->host().log;
    return service != nullptr && context_->open() &&
           service->enabled(service->host, static_cast<std::int32_t>(at)) != 0;
}

inline void host::log(level at, std::string_view message, fields with) const noexcept {
    if (!enabled(at)) return;
    constexpr std::size_t most = 16; // more are cut off: a log line allocates nothing
    gantry_field out[most];
    std::uint32_t count = 0;
    for (const auto& one : with) {
        if (count < most) out[count++] = {str(one.key), str(one.value)};
    }
    const auto* service = context_->host().log;
    service->write(service->host, static_cast<std::int32_t>(at), str(message), out, count);
}

inline result<metric> host::define(std::int32_t kind, std::string_view name, std::string_view help) const {
    if (!context_->open()) return context_->closed();
    const auto* service = context_->host().metrics;
    if (service == nullptr) return detail::missing_service(GANTRY_SERVICE_METRICS);
    if (const auto id = service->define(service->host, kind, str(name), str(help)); id != 0)
        return metric(context_, id);
    return gantry::error{.code = code::invalid,
                         .message = "define metric \"" + std::string(name) +
                                    "\": the name is taken, not of the form [a-z_][a-z0-9_]*, or init() is over"};
}

inline void host::publish(std::string_view topic, std::string_view key, std::string_view bytes) const noexcept {
    const auto* service = context_->host().events;
    if (service != nullptr && context_->open()) service->publish(service->host, str(topic), str(key), str(bytes));
}

inline void host::emit(std::string_view event_json) const noexcept {
    const auto* service = context_->host().events;
    if (service != nullptr && context_->open()) service->emit(service->host, str(event_json));
}

inline result<subscription> host::subscribe(std::string_view topic,
                                            unique_function<sdk::subscription::signature> f) const {
    if (!context_->open()) return context_->closed();
    const auto* service = context_->host().events;
    if (service == nullptr) return detail::missing_service(GANTRY_SERVICE_EVENTS);
    using abi = void(gantry_str, gantry_str, gantry_str);
    auto* one =
        context_->keep<abi>("an event callback", [f = std::move(f)](gantry_str t, gantry_str k, gantry_str b) mutable {
            f(view(t), view(k), view(b));
        });
    const gantry_event_fn run = &detail::context::run_each<abi, gantry_str, gantry_str, gantry_str>;
    const auto handle = service->subscribe(service->host, str(topic), run, one);
    if (handle != 0) return subscription({context_, one, handle});
    context_->free(one);
    return gantry::error{.code = code::internal,
                         .message = "subscribe to \"" + std::string(topic) + "\": the host refused"};
}

inline result<timer> host::after(std::chrono::nanoseconds delay, unique_function<void()> f) const {
    if (!context_->open()) return context_->closed();
    const auto* service = context_->host().timer;
    if (service == nullptr) return detail::missing_service(GANTRY_SERVICE_TIMER);
    auto* one = context_->keep<void()>("a timer callback", std::move(f));
    const auto ns = delay.count() > 0 ? static_cast<std::uint64_t>(delay.count()) : 0;
    const auto handle = service->after(service->host, ns, &detail::context::run_once, one);
    if (handle != 0) return timer({context_, one, handle});
    context_->free(one);
    return gantry::error{.code = code::resource, .message = "set a timer: the host refused"};
}

inline result<watch> host::watch_fd(int fd, std::uint32_t events, unique_function<watch::signature> f) const {
    if (!context_->open()) return context_->closed();
    const auto* service = context_->host().fd;
    if (service == nullptr) return detail::missing_service(GANTRY_SERVICE_FD);
    auto* one = context_->keep<watch::signature>("a descriptor callback", std::move(f));
    const gantry_fd_fn run = &detail::context::run_each<watch::signature, std::int32_t, std::uint32_t>;
    const auto handle = service->watch(service->host, fd, events, run, one);
    if (handle != 0) return watch({context_, one, handle});
    context_->free(one);
    return gantry::error{.code = code::invalid,
                         .message =
                             "watch file descriptor " + std::to_string(fd) + ": the host refused; can epoll watch it?"};
}

inline result<void> host::put(std::string_view key, std::string_view value) const {
    if (!context_->open()) return context_->closed();
    const auto* service = context_->host().state;
    if (service == nullptr) return detail::missing_service(GANTRY_SERVICE_STATE);
    error_catcher caught;
    const auto status = service->put(service->host, str(key), str(value), caught.sink());
    if (status == GANTRY_OK) return {};
    return caught.take(status, "keep state \"" + std::string(key) + '"');
}

inline result<std::string> host::get(std::string_view key) const {
    if (!context_->open()) return context_->closed();
    const auto* service = context_->host().state;
    if (service == nullptr) return detail::missing_service(GANTRY_SERVICE_STATE);
    std::string out;
    const auto take = [](void* to, gantry_str value) { *static_cast<std::string*>(to) = view(value); };
    const auto status = service->get(service->host, str(key), take, &out);
    if (status == GANTRY_OK) return out;
    return gantry::error{.code = code_of(status),
                         .message =
                             "read state \"" + std::string(key) + "\": " + std::string(to_string(code_of(status)))};
}

inline result<std::vector<std::string>> host::keys() const {
    if (!context_->open()) return context_->closed();
    const auto* service = context_->host().state;
    if (service == nullptr) return detail::missing_service(GANTRY_SERVICE_STATE);
    std::vector<std::string> out;
    const auto take = [](void* to, gantry_str key) {
        static_cast<std::vector<std::string>*>(to)->emplace_back(view(key));
    };
    service->list(service->host, take, &out);
    return out;
}

namespace detail {
inline root drive(task<void> what) {
    auto own = std::move(what); // a parameter would be destroyed after the scope that its awaits refer to
    co_await std::move(own);
}
} // namespace detail

inline void host::launch(task<void> what) const { detail::drive(std::move(what)).start(context_); }

inline async<void> host::sleep(std::chrono::nanoseconds delay) const {
    using awaited = async<void>;
    return awaited([self = *this, delay](const awaited::box& box) -> result<awaited::stopper> {
        GANTRY_TRY(auto alarm, self.after(delay, [box] { box->deliver({}); }));
        return awaited::stopper([alarm = std::move(alarm)]() mutable { alarm.cancel(); });
    });
}

namespace detail {
/// Awaits f, which stays where it is, on a worker.
template <class T, class F>
async<T> work_in_place(const std::shared_ptr<context>& owner, F& f) {
    using awaited = async<T>;
    return awaited([owner, &f](const typename awaited::box& box) -> result<typename awaited::stopper> {
        GANTRY_CHECK(owner->submit([owner, box, &f] {
            auto outcome = run_guarded<T>(*owner, "a function on a worker", f);
            owner->post([box, outcome = std::move(outcome)]() mutable { box->deliver(std::move(outcome)); });
        }));
        return typename awaited::stopper{}; // the coroutine must not go on before f has ended
    });
}
} // namespace detail

template <class F>
auto host::work(F&& f) const {
    static_assert(std::is_lvalue_reference_v<F> || std::is_trivially_copyable_v<F>,
                  "capture by reference, or give the function object a name: GCC 12 destroys it twice otherwise");
    using T = typename detail::unwrap<std::invoke_result_t<F&>>::type;
    return detail::work_in_place<T>(context_, f);
}

inline async<exit_status> host::run(const command& what) const {
    using awaited = async<exit_status>;
    return awaited([self = *this, &what](const awaited::box& box) -> result<awaited::stopper> {
        GANTRY_TRY(const auto pid, self.spawn(what, [box](exit_status status) { box->deliver(status); }));
        return awaited::stopper([self, pid] { self.kill(pid); });
    });
}

inline async<reply> host::call(std::string_view capability, std::string_view op, const request& with,
                               time_point deadline) const {
    using awaited = async<reply>;
    return awaited([self = *this, capability, op, &with,
                    deadline](const awaited::box& box) -> result<awaited::stopper> {
        GANTRY_CHECK(self.call(capability, op, with, deadline, [box](result<reply> r) { box->deliver(std::move(r)); }));
        return awaited::stopper([] {}); // the host ends the call at its deadline; its reply is dropped
    });
}

inline async<reply> host::call(std::string_view capability, std::string_view op, std::string bytes,
                               time_point deadline) const {
    using awaited = async<reply>;
    return awaited([self = *this, capability, op, with = request{.bytes = std::move(bytes)},
                    deadline](const awaited::box& box) -> result<awaited::stopper> {
        GANTRY_CHECK(self.call(capability, op, with, deadline, [box](result<reply> r) { box->deliver(std::move(r)); }));
        return awaited::stopper([] {});
    });
}

namespace detail {
/// Element is reply, or std::reference_wrapper<const reply> for one that stays where it is.
template <class Element>
async<void> send_item(const std::shared_ptr<context>& owner, op to, Element element) {
    using awaited = async<void>;
    return awaited([owner, item = [to = std::move(to), element = std::forward<Element>(element)] {
                       return to.item(element);
                   }](const awaited::box& box) -> result<awaited::stopper> {
        GANTRY_CHECK(owner->submit([owner, box, &item] { // the await, and item with it, lives until box is served
            auto outcome = run_guarded<void>(*owner, "a stream", item);
            owner->post([box, outcome = std::move(outcome)] { box->deliver(outcome); });
        }));
        return awaited::stopper{};
    });
}
} // namespace detail

inline async<void> host::send(sdk::op to, const reply& element) const {
    return detail::send_item(context_, std::move(to), std::cref(element));
}
inline async<void> host::send(sdk::op to, std::string bytes) const {
    return detail::send_item(context_, std::move(to), reply{.bytes = std::move(bytes)});
}

} // namespace gantry::sdk
