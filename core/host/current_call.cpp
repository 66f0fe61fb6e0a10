#include "core/host/current_call.hpp"

#include <mutex>
#include <set>
#include <string>

namespace gantry::core {

namespace {

// Constant-initialised, in the executable: a signal handler may read it without allocating.
constinit thread_local current_call present{};

} // namespace

const current_call& current_call::get() noexcept { return present; }

call_scope::call_scope(const char* instance, const char* what, std::uint64_t op) noexcept : before_(present) {
    present = {.instance = instance, .what = what, .op = op};
}

call_scope::~call_scope() { present = before_; }

const char* interned(const char* text) {
    static auto* mutex = new std::mutex;
    static auto* texts = new std::set<std::string>;
    const std::lock_guard lock(*mutex);
    return texts->emplace(text).first->c_str();
}

} // namespace gantry::core
