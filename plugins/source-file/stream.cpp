#include "plugins/source-file/stream.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/files.hpp"

namespace gantry::source_file {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t size_limit = 10u << 20;
constexpr auto move_grace = 100ms; // an editor that moves the old file aside writes the new one within this
constexpr auto settle_time =
    2s; // a listing leaves a file alone that was written to just now: its writer may not be done
constexpr auto retry_time = 1s; // of a path that cannot be watched

std::int64_t wall_ns() { return std::chrono::system_clock::now().time_since_epoch() / 1ns; }

} // namespace

error stream::run(const std::stop_token& stop) {
    const base::unique_fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake) return sys_error("eventfd", errno);
    const std::stop_callback on_stop(stop, [&] { ::eventfd_write(wake.get(), 1); });
    const error stopped{.code = code::cancelled, .message = "the watch was cancelled", .retryable = true};
    while (!stop.stop_requested()) {
        result<void> done;
        if (!folder_) {
            done = attach();
        } else if (clock::now() >= next_listing_) {
            done = list(true);
        } else {
            done = expire_moves();
        }
        if (!done) return std::move(done).error();

        const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_wake() - clock::now());
        pollfd fds[] = {{wake.get(), POLLIN, 0}, {folder_ ? folder_->fd() : -1, POLLIN, 0}};
        const int ready = ::poll(fds, 2, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000)));
        if (ready < 0 && errno != EINTR) return sys_error("poll", errno);
        if (!folder_ || ready <= 0 || !(fds[1].revents & POLLIN)) continue;
        for (const auto& event : folder_->read()) {
            if (auto handled = handle(event); !handled) return std::move(handled).error();
            if (event.what == folder_event::kind::lost) break; // what follows was about the old one
        }
    }
    return stopped;
}

stream::clock::time_point stream::next_wake() const {
    auto at = next_listing_;
    for (const auto& [path, when] : moved_away_) at = std::min(at, when);
    return at;
}

result<void> stream::attach() {
    auto opened = folder::open(settings_.path);
    if (!opened) return detach(opened.error().message, opened.error().sys_errno == ENOENT);
    folder_.emplace(*std::move(opened));
    catalogue_.forget(settings_.path + "/");
    return list(false);
}

/// A path that does not exist is an empty one, as it is to a kubelet; of one that cannot be read nothing is known, and
/// nothing changes.
result<void> stream::detach(const std::string& why, bool gone) {
    folder_.reset();
    next_listing_ = clock::now() + retry_time;
    if (gone) {
        for (const auto& path : catalogue_.paths()) forget(path);
    }
    catalogue_.refuse(settings_.path + "/", why);
    GANTRY_CHECK(tell());
    return gone ? tell_synced() : result<void>{};
}

result<void> stream::list(bool settled_only) {
    next_listing_ = clock::now() + settings_.relist;
    const auto entries = folder_->list();
    if (!entries) return detach(entries.error().message, entries.error().sys_errno == ENOENT);
    const std::int64_t settled = wall_ns() - (settled_only ? settle_time / 1ns : 0);
    auto gone = loaded_;
    for (const auto& [path, now] : *entries) {
        gone.erase(path);
        const auto before = loaded_.find(path);
        if (before != loaded_.end() && before->second == now) continue;
        if (!settled_only || now.mtime_ns <= settled) load(path);
    }
    for (const auto& [path, before] : gone) {
        if (!moved_away_.contains(path)) forget(path);
    }
    GANTRY_CHECK(tell());
    if (synced_) return {};
    std::set<std::string> present;
    for (const auto& found : *entries) present.insert(found.path);
    if (auto kept = last_good_.keep_only(present); !kept) settings_.warn(kept.error().message);
    return tell_synced();
}

result<void> stream::handle(const folder_event& event) {
    using kind = folder_event::kind;
    switch (event.what) {
    case kind::written: load(event.path); break;
    case kind::renamed:
        forget(event.from);
        load(event.path);
        break;
    case kind::deleted: forget(event.path); break;
    case kind::moved_away: moved_away_.insert_or_assign(event.path, clock::now() + move_grace); break;
    case kind::relist: return list(false);
    case kind::lost: folder_.reset(); return attach();
    }
    return tell();
}

result<void> stream::expire_moves() {
    const auto now = clock::now();
    for (auto at = moved_away_.begin(); at != moved_away_.end();) {
        if (at->second > now) {
            ++at;
            continue;
        }
        const std::string path = (at++)->first;
        forget(path);
    }
    return tell();
}

void stream::forget(const std::string& path) {
    loaded_.erase(path);
    moved_away_.erase(path);
    unsaved_.erase(path);
    last_good_.drop(path);
    catalogue_.forget(path);
}

void stream::load(const std::string& path) {
    moved_away_.erase(path);
    const auto found = stat_entry(path);
    if (!found) {
        if (found.error().sys_errno == ENOENT) return; // its own event follows
        return refuse(path, found.error().message);
    }
    loaded_.insert_or_assign(path, found->signature);
    auto text = base::read_file(path, size_limit);
    if (!text) return refuse(path, text.error().message);
    auto pods = read_manifest(*text, path, settings_.node_name, std::chrono::system_clock::now());
    if (!pods) return refuse(path, pods.error().message);
    catalogue_.set(path, *std::move(pods));
    unsaved_.insert_or_assign(path, *std::move(text));
}

/// Beside the pods that the file had before: in this run, or in one before it.
void stream::refuse(const std::string& path, std::string why) {
    if (!catalogue_.knows(path))
        if (const auto text = last_good_.load(path))
            if (auto pods = read_manifest(*text, path, settings_.node_name, std::chrono::system_clock::now()))
                catalogue_.set(path, *std::move(pods));
    catalogue_.refuse(path, std::move(why));
}

result<void> stream::tell() {
    for (const auto& item : catalogue_.changes()) GANTRY_CHECK(out_(item));
    for (const auto& [path, text] : std::exchange(unsaved_, {})) // after the pod is on its way
        if (auto saved = last_good_.save(path, text); !saved) settings_.warn(saved.error().message);
    return {};
}

result<void> stream::tell_synced() {
    if (std::exchange(synced_, true)) return {};
    return out_(R"({"type":"SYNCED"})");
}

} // namespace gantry::source_file
