#include "core/log/log.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "base/unique_fd.hpp"

namespace gantry::core::log {
namespace {

/// stderr as a pipe for the life of this object.
class captured_stderr {
public:
    captured_stderr() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
        read_.reset(ends[0]);
        saved_.reset(::dup(STDERR_FILENO));
        ::dup2(ends[1], STDERR_FILENO);
        ::close(ends[1]);
    }
    ~captured_stderr() { restore(); }

    std::string finish() {
        restore();
        std::string all;
        char buffer[4096];
        for (ssize_t n; (n = ::read(read_.get(), buffer, sizeof buffer)) > 0;) all.append(buffer, static_cast<std::size_t>(n));
        return all;
    }

private:
    void restore() {
        if (saved_) ::dup2(saved_.get(), STDERR_FILENO);
        saved_.reset();
    }
    base::unique_fd read_, saved_;
};

TEST(log, writes_lines_of_its_level_with_their_fields) {
    captured_stderr captured;
    configure(log_format::json, log_level::warn);
    info("not this");
    warn("this", {{"pod", "ns/p"}});
    flush();
    configure(log_format::text, log_level::info);
    const auto text = captured.finish();
    EXPECT_EQ(text.find("not this"), std::string::npos) << text;
    EXPECT_NE(text.find("\"level\":\"warn\",\"msg\":\"this\",\"pod\":\"ns/p\"}\n"), std::string::npos) << text;
}

TEST(log, a_channel_has_its_own_level_and_name) {
    captured_stderr captured;
    channel net("net", log_level::error);
    net.write(log_level::info, "before", {});
    net.set_level(log_level::debug);
    net.write(log_level::debug, "after", {});
    flush();
    const auto text = captured.finish();
    EXPECT_EQ(text.find("before"), std::string::npos) << text;
    EXPECT_NE(text.find("DEBUG after plugin=net\n"), std::string::npos) << text;
}

TEST(log, a_full_pipe_never_blocks_the_caller) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    base::unique_fd read_end(ends[0]), saved(::dup(STDERR_FILENO));
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    const std::string big(4000, 'x');
    for (int i = 0; i < 5000; ++i) info(big); // 20 MB into a pipe of 64 KiB that nobody reads
    read_end.reset(); // reached: that is the behaviour; now the writer goes on, with EPIPE
    flush();
    ::dup2(saved.get(), STDERR_FILENO);
}

} // namespace
} // namespace gantry::core::log

int main(int argc, char** argv) {
    ::signal(SIGPIPE, SIG_IGN);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
