#include "plugins/cri-native/images/loader.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "base/unique_fd.hpp"
#include "plugins/cri-native/helper/report.hpp"

namespace gantry::images {

namespace {

using base::json::object;
using std::chrono::steady_clock;

constexpr std::size_t reply_limit = 32u << 20; // an image message holds the config's fields
constexpr std::size_t stderr_kept = 512;

class conversation {
public:
    conversation(const load_options& options, int replies)
        : options_(options), replies_(replies), lines_(reply_limit) {}

    /// Reads until the helper closes its end. The error is the helper's own, or of the conversation.
    result<void> run() {
        while (true) {
            GANTRY_CHECK(wait());
            GANTRY_TRY(const bool more, lines_.read(replies_));
            std::string line;
            while (lines_.next(line)) GANTRY_CHECK(take(line));
            if (!more) return {};
        }
    }

    bool done() const { return done_; }
    unpacked content;

private:
    result<void> wait() const {
        while (true) {
            int timeout = -1;
            if (options_.deadline != steady_clock::time_point::max()) {
                const auto left = std::chrono::ceil<std::chrono::milliseconds>(options_.deadline - steady_clock::now());
                if (left.count() <= 0)
                    return error{.code = code::timeout, .message = "the image was not unpacked within its deadline"};
                timeout = static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30));
            }
            pollfd polled{replies_, POLLIN, 0};
            const int ready = ::poll(&polled, 1, timeout);
            if (ready > 0) return {};
            if (ready < 0 && errno != EINTR) return sys_error("poll", errno);
        }
    }

    result<void> take(const std::string& line) {
        GANTRY_TRY(const auto value, base::parse_json(line, "reply of the image helper"));
        try {
            const object& message = value.as_object();
            const auto& type = message.at("type").as_string();
            if (type == "error") return cri_helper::error_in(message);
            if (type == "progress" && options_.on_progress)
                options_.on_progress({std::string(message.at("layer").as_string()),
                                      message.at("done").to_number<std::uint64_t>(),
                                      message.at("total").to_number<std::uint64_t>()});
            if (type == "warning" && options_.on_warning)
                options_.on_warning(std::string(message.at("message").as_string()));
            if (type == "layer") content.layers.push_back(layer_in(message));
            if (type == "image") content.images.push_back(image_in(message));
            if (type == "done") done_ = true;
            return {};
        } catch (const std::exception& e) {
            return error{.message = std::string("reply of the image helper: ") + e.what()};
        }
    }

    static unpacked_layer layer_in(const object& message) {
        return {.dir = std::string(message.at("dir").as_string()),
                .record = {.diff_id = std::string(message.at("diffID").as_string()),
                           .chain = std::string(message.at("chain").as_string()),
                           .bytes = message.at("bytes").to_number<std::uint64_t>(),
                           .inodes = message.at("inodes").to_number<std::uint64_t>(),
                           .opaque_root = message.at("opaqueRoot").as_bool()}};
    }

    static unpacked_image image_in(const object& message) {
        return {.info = image_with(std::string(message.at("id").as_string()), message.at("config").as_object()),
                .refs = strings_in(message.at("refs")),
                .manifest_digest = std::string(message.at("manifestDigest").as_string()),
                .layers = strings_in(message.at("layers"))};
    }

    const load_options& options_;
    int replies_;
    cri_helper::line_splitter lines_;
    bool done_ = false;
};

error died(int status, int stderr_fd) {
    error e{.code = code::unavailable, .message = "the image helper ", .retryable = true};
    if (WIFSIGNALED(status))
        e.message += std::string("was killed by signal ") + ::strsignal(WTERMSIG(status));
    else
        e.message += "ended with status " + std::to_string(WEXITSTATUS(status));
    char text[stderr_kept];
    if (const ssize_t n = ::pread(stderr_fd, text, sizeof text, 0); n > 0)
        e.message += ": " + std::string(text, static_cast<std::size_t>(n));
    return e;
}

} // namespace

result<unpacked> run_helper(const store_options& store, const load_options& options, const helper_fds& fds) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return sys_error("pipe", errno);
    base::unique_fd replies(ends[0]);
    base::unique_fd writer(ends[1]);
    base::unique_fd errors(::memfd_create("helper-stderr", MFD_CLOEXEC));
    if (!errors) return sys_error("memfd_create", errno);

    const spawn_request request{.argv = {store.helper, "load"},
                                .fds = {fds.request, writer.get(), errors.get(), fds.archive, fds.work, fds.layers},
                                .deadline = options.deadline};
    GANTRY_TRY(const auto helper, store.spawn ? store.spawn(request) : posix_spawner()(request));
    writer.reset();
    const std::stop_callback on_stop(options.stop, [&] { helper->kill(); });

    conversation talk(options, replies.get());
    const auto spoken = talk.run();
    if (!spoken || !talk.done()) helper->kill();
    const int status = helper->wait();
    if (options.stop.stop_requested())
        return error{.code = code::cancelled, .message = "loading the image was cancelled"};
    if (!spoken) return spoken.error();
    if (!talk.done() || status != 0) return died(status, errors.get());
    return std::move(talk.content);
}

} // namespace gantry::images
