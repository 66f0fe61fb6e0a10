#include "core/logs/log_reader.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/files.hpp"
#include "base/unique_fd.hpp"

namespace gantry::core::logs {
namespace {

constexpr const char* when = "2026-01-02T03:04:05.000000006Z";

class log_dir : public testing::Test {
protected:
    log_dir() {
        char name[] = "/tmp/gantry-logs-XXXXXX";
        options.directory = ::mkdtemp(name);
    }
    ~log_dir() override { (void)base::remove_tree(options.directory); }

    void append(const std::string& file, const std::string& stream, const std::string& tag, const std::string& payload,
                const std::string& time = when) {
        std::ofstream(options.directory + "/" + file, std::ios::app) << time << ' ' << stream << ' ' << tag << ' ' << payload << '\n';
    }
    std::string read() {
        std::string out;
        auto done = read_log(options, -1, [] { return true; }, [&](std::string_view bytes) {
            out += bytes;
            return true;
        });
        EXPECT_TRUE(done) << (done ? "" : done.error().message);
        return out;
    }

    read_options options;
};

TEST_F(log_dir, joins_partial_records_across_a_rotation) {
    append("0.log.20260102-030405", "stdout", "P", "one ");
    append("0.log", "stdout", "F", "line");
    EXPECT_EQ(read(), "one line\n");
}

TEST_F(log_dir, reads_only_the_wanted_run) {
    append("0.log", "stdout", "F", "first");
    append("1.log", "stdout", "F", "second");
    options.attempt = 1;
    EXPECT_EQ(read(), "second\n");
}

TEST_F(log_dir, puts_one_timestamp_before_a_joined_line) {
    append("0.log", "stdout", "P", "a");
    append("0.log", "stdout", "F", "b");
    options.timestamps = true;
    EXPECT_EQ(read(), std::string(when) + " ab\n");
}

TEST_F(log_dir, leaves_out_what_is_older_than_since) {
    append("0.log", "stdout", "F", "old", "2026-01-01T00:00:00Z");
    append("0.log", "stdout", "F", "new", "2026-01-03T00:00:00Z");
    options.since = "2026-01-02T00:00:00Z";
    EXPECT_EQ(read(), "new\n");
}

TEST_F(log_dir, gives_the_last_lines_across_files) {
    append("0.log.20260102-030405", "stdout", "F", "a");
    append("0.log.20260102-030405", "stdout", "F", "b");
    append("0.log", "stdout", "F", "c");
    options.tail = 2;
    EXPECT_EQ(read(), "b\nc\n");
    options.tail = 1;
    EXPECT_EQ(read(), "c\n");
    options.tail = 0;
    EXPECT_EQ(read(), "");
    options.tail = 99;
    EXPECT_EQ(read(), "a\nb\nc\n");
}

TEST_F(log_dir, finds_the_tail_of_a_file_of_many_blocks) {
    std::string expected;
    for (int i = 0; i < 5000; ++i) {
        append("0.log", "stdout", "F", "line " + std::to_string(i) + std::string(60, '.'));
        if (i >= 3000) expected += "line " + std::to_string(i) + std::string(60, '.') + "\n";
    }
    options.tail = 2000;
    EXPECT_EQ(read(), expected);
}

TEST_F(log_dir, says_which_file_is_missing) {
    const auto done = read_log(options, -1, [] { return true; }, [](std::string_view) { return true; });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, code::not_found);
    EXPECT_NE(done.error().message.find("/0.log"), std::string::npos);
}

TEST_F(log_dir, follower_sees_every_line_once_while_the_writer_rotates) {
    append("0.log", "stdout", "F", "line 0");
    options.follow = true;
    base::unique_fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    std::atomic<bool> over = false;
    std::string out;
    std::thread follower([&] {
        auto done = read_log(options, wake.get(), [&] { return over.load(); }, [&](std::string_view bytes) {
            out += bytes;
            return true;
        });
        EXPECT_TRUE(done) << (done ? "" : done.error().message);
    });
    std::string expected = "line 0\n";
    for (int i = 1; i < 2000; ++i) {
        if (i % 250 == 0) {
            const std::string live = options.directory + "/0.log";
            ASSERT_EQ(::rename(live.c_str(), (live + "." + std::to_string(100000 + i)).c_str()), 0);
        }
        append("0.log", "stdout", "F", "line " + std::to_string(i));
        expected += "line " + std::to_string(i) + "\n";
    }
    over = true;
    ASSERT_EQ(::eventfd_write(wake.get(), 1), 0);
    follower.join();
    EXPECT_EQ(out, expected);
}

} // namespace
} // namespace gantry::core::logs
