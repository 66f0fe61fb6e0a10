// gantry.events/1.
#include "core/host/abi_copy.hpp"
#include "core/host/barrier.hpp"
#include "core/host/services.hpp"

namespace gantry::core {

namespace {

void publish(const void* host, gantry_str topic, gantry_str key, gantry_str bytes) noexcept {
    guarded(host, "events.publish", [&](instance& owner) {
        owner.events().publish(std::string(view(topic)), std::string(view(key)), std::string(view(bytes)));
    });
}

std::uint64_t subscribe(const void* host, gantry_str topic, gantry_event_fn fn, void* context) noexcept {
    return guarded(host, "events.subscribe", std::uint64_t{0}, [&](instance& owner) -> std::uint64_t {
        if (!fn) return 0;
        return owner.events().subscribe(std::string(view(topic)),
                                        [&owner, fn, context](const std::string& topic, const std::string& key, const std::string& bytes) {
                                            owner.enter("event", 0, [&] { fn(context, borrow(topic), borrow(key), borrow(bytes)); });
                                        });
    });
}

void unsubscribe(const void* host, std::uint64_t subscription) noexcept {
    guarded(host, "events.unsubscribe", [&](instance& owner) { owner.events().unsubscribe(subscription); });
}

void emit(const void* host, gantry_str event_json) noexcept {
    guarded(host, "events.emit", [&](instance& owner) { owner.events().emit(std::string(view(event_json))); });
}

} // namespace

gantry_events_service make_events_service(instance& owner) {
    return {.struct_size = sizeof(gantry_events_service),
            .reserved = 0,
            .host = &owner,
            .publish = publish,
            .subscribe = subscribe,
            .unsubscribe = unsubscribe,
            .emit = emit};
}

} // namespace gantry::core
