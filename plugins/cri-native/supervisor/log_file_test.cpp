#include "plugins/cri-native/supervisor/log_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace gantry::cri_native::supervisor {
namespace {

std::string timestamp(std::int64_t ns) {
    line<128> text;
    add_timestamp(text, ns);
    return text.c_str();
}

class cri_log : public ::testing::Test {
protected:
    void SetUp() override {
        char path[] = "/tmp/gantry-log-test-XXXXXX";
        const int fd = ::mkstemp(path);
        ASSERT_GE(fd, 0);
        ::close(fd);
        path_ = path;
        ASSERT_TRUE(log_.open(path));
    }
    void TearDown() override { ::unlink(path_.c_str()); }

    void write(const std::string& bytes) { log_.write("stdout", partial_, bytes.data(), bytes.size(), 0); }
    std::string content() const {
        std::ostringstream all;
        all << std::ifstream(path_, std::ios::binary).rdbuf();
        return all.str();
    }

    static constexpr const char* epoch = "1970-01-01T00:00:00.000000000Z stdout ";
    std::string path_;
    log_file log_;
    partial_line partial_;
};

TEST(cri_timestamp, is_rfc3339_in_utc_with_nanoseconds) {
    EXPECT_EQ(timestamp(0), "1970-01-01T00:00:00.000000000Z");
    EXPECT_EQ(timestamp(951782399'000000001), "2000-02-28T23:59:59.000000001Z");
    EXPECT_EQ(timestamp(951782400'000000000), "2000-02-29T00:00:00.000000000Z");
    EXPECT_EQ(timestamp(1475799429'669794202), "2016-10-07T00:17:09.669794202Z");
    EXPECT_EQ(timestamp(4102444799'999999999), "2099-12-31T23:59:59.999999999Z");
    EXPECT_EQ(timestamp(4107542400'000000000), "2100-03-01T00:00:00.000000000Z"); // 2100 has no 29 February
}

TEST_F(cri_log, a_line_in_many_reads_is_one_line) {
    write("he");
    write("l");
    EXPECT_EQ(content(), "");
    write("lo\nnext\nrest");
    EXPECT_EQ(content(), std::string(epoch) + "F hello\n" + epoch + "F next\n");
    log_.finish("stdout", partial_, 0);
    EXPECT_EQ(content(), std::string(epoch) + "F hello\n" + epoch + "F next\n" + epoch + "F rest\n");
}

TEST_F(cri_log, empty_lines_are_lines) {
    write("\n\n");
    EXPECT_EQ(content(), std::string(epoch) + "F \n" + epoch + "F \n");
}

TEST_F(cri_log, exactly_the_limit_is_whole_and_one_more_byte_is_not) {
    const std::string limit(16384, 'x');
    write(limit + "\n");
    EXPECT_EQ(content(), epoch + ("F " + limit) + "\n");
    write(limit);
    write("y\n");
    EXPECT_EQ(content(), epoch + ("F " + limit) + "\n" + epoch + "P " + limit + "\n" + epoch + "F y\n");
}

TEST_F(cri_log, pieces_are_the_same_however_the_reads_fall) {
    std::string bytes;
    for (int i = 0; i < 200000; ++i) bytes += static_cast<char>(i % 251 == 10 ? 'n' : i % 251);
    bytes += '\n';
    write(bytes);
    const std::string at_once = content();
    ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
    for (std::size_t at = 0; at < bytes.size(); at += 777) write(bytes.substr(at, 777));
    EXPECT_TRUE(content() == at_once);
}

TEST_F(cri_log, many_short_lines_in_one_read_are_all_there) {
    std::string bytes, expected;
    for (int i = 0; i < 5000; ++i) {
        bytes += std::to_string(i) + "\n";
        expected += epoch + ("F " + std::to_string(i)) + "\n";
    }
    write(bytes);
    EXPECT_TRUE(content() == expected);
}

TEST_F(cri_log, reopening_continues_in_the_new_file) {
    write("old\nhal");
    ASSERT_EQ(::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
    ASSERT_TRUE(log_.open(path_.c_str()));
    write("f\n");
    EXPECT_EQ(content(), epoch + std::string("F half\n"));
    ::unlink((path_ + ".1").c_str());
}

TEST_F(cri_log, a_symlink_is_not_followed_and_the_old_file_stays) {
    const std::string link = path_ + ".link";
    ASSERT_EQ(::symlink("/dev/null", link.c_str()), 0);
    EXPECT_FALSE(log_.open(link.c_str()));
    write("still here\n");
    EXPECT_EQ(content(), epoch + std::string("F still here\n"));
    ::unlink(link.c_str());
}

// RLIMIT_FSIZE makes write(2) short and then fail, as a full disk does.
TEST_F(cri_log, what_the_disk_cannot_take_is_counted_and_told_later) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{100, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    write(std::string(200, 'a') + "\n");
    write("lost\n");
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    const std::string prefix(epoch);
    const std::size_t line_size = prefix.size() + 2 + 201;
    const std::size_t lost = line_size - 100 + prefix.size() + 2 + 5;
    EXPECT_EQ(log_.dropped(), lost);
    write("back\n");
    std::string expected = prefix + "F " + std::string(200, 'a');
    expected.resize(100);
    expected += "\n1970-01-01T00:00:00.000000000Z stderr F gantry: " + std::to_string(lost) +
                " bytes of log lost here: the disk was full\n" + prefix + "F back\n";
    EXPECT_EQ(content(), expected);
}

} // namespace
} // namespace gantry::cri_native::supervisor
