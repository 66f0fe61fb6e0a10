#include "plugins/cri-native/runtime/rootfs/lookup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "plugins/cri-native/runtime/rootfs/disk_usage.hpp"

namespace gantry::cri_native {
namespace {

/// Two layers in a fresh directory, the upper one first.
class image_lookup : public testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/lookup-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        root_ = name;
        for (const auto& layer : {upper(), lower()}) ASSERT_TRUE(base::make_dirs(layer + "/etc", 0755));
    }
    void TearDown() override { EXPECT_TRUE(base::remove_tree(root_)); }

    std::string upper() const { return root_ + "/upper"; }
    std::string lower() const { return root_ + "/lower"; }
    static void write(const std::string& path, std::string_view text) {
        ASSERT_TRUE(base::write_file_atomic(path, text));
    }
    static void link(const std::string& target, const std::string& path) {
        ASSERT_EQ(::symlink(target.c_str(), path.c_str()), 0);
    }
    static void whiteout(const std::string& path) { ASSERT_EQ(::mknod(path.c_str(), S_IFCHR, makedev(0, 0)), 0); }
    std::string find(const std::string& path) {
        const auto found = read_image_file({upper(), lower()}, path);
        EXPECT_TRUE(found) << (found ? "" : found.error().message);
        return found && *found ? **found : "(none)";
    }
    std::string root_;
};

TEST_F(image_lookup, takes_the_topmost_file) {
    write(lower() + "/etc/passwd", "lower");
    EXPECT_EQ(find("/etc/passwd"), "lower");
    write(upper() + "/etc/passwd", "upper");
    EXPECT_EQ(find("/etc/passwd"), "upper");
    EXPECT_EQ(find("/etc/group"), "(none)");
}

TEST_F(image_lookup, honours_whiteouts_and_opaque_directories) {
    write(lower() + "/etc/passwd", "lower");
    whiteout(upper() + "/etc/passwd");
    EXPECT_EQ(find("/etc/passwd"), "(none)");
    ASSERT_TRUE(base::make_dirs(lower() + "/opt", 0755));
    ASSERT_TRUE(base::make_dirs(upper() + "/opt", 0755));
    write(lower() + "/opt/file", "hidden");
    EXPECT_EQ(find("/opt/file"), "hidden");
    if (::setxattr((upper() + "/opt").c_str(), "trusted.overlay.opaque", "y", 1, 0) != 0)
        GTEST_SKIP() << "no trusted xattrs here";
    EXPECT_EQ(find("/opt/file"), "(none)");
}

TEST_F(image_lookup, lets_a_file_hide_a_directory_below) {
    ASSERT_TRUE(base::make_dirs(lower() + "/opt", 0755));
    write(lower() + "/opt/file", "hidden");
    write(upper() + "/opt", "a file");
    EXPECT_EQ(find("/opt/file"), "(none)");
}

TEST_F(image_lookup, follows_links_inside_the_image_only) {
    write(root_ + "/secret", "outside");
    ASSERT_TRUE(base::make_dirs(lower() + "/usr/lib", 0755));
    write(lower() + "/usr/lib/passwd", "merged");
    link("../usr/lib/passwd", upper() + "/etc/passwd");
    EXPECT_EQ(find("/etc/passwd"), "merged");
    link("../../../../../" + root_ + "/secret", upper() + "/etc/group");
    EXPECT_EQ(find("/etc/group"), "(none)");
    link("/usr", upper() + "/abs");
    EXPECT_EQ(find("/abs/lib/passwd"), "merged");
}

TEST_F(image_lookup, ends_on_loops_and_odd_files) {
    link("b", upper() + "/etc/a");
    link("a", upper() + "/etc/b");
    EXPECT_EQ(read_image_file({upper(), lower()}, "/etc/a").error().code, code::invalid);
    ASSERT_EQ(::mkfifo((upper() + "/etc/passwd").c_str(), 0600), 0);
    EXPECT_EQ(find("/etc/passwd"), "(none)");
    EXPECT_EQ(find("/etc"), "(none)");
    write(upper() + "/etc/file", "x");
    EXPECT_EQ(find("/etc/file/deeper"), "(none)");
}

TEST_F(image_lookup, refuses_files_beyond_the_limit) {
    write(upper() + "/etc/passwd", std::string(5000, 'x'));
    EXPECT_EQ(read_image_file({upper()}, "/etc/passwd", 4096).error().code, code::invalid);
}

TEST_F(image_lookup, measures_trees) {
    write(upper() + "/etc/passwd", std::string(100'000, 'x'));
    const auto usage = measure_tree(upper());
    EXPECT_EQ(usage.inodes, 3u);
    EXPECT_GE(usage.bytes, 100'000u);
    EXPECT_EQ(measure_tree(root_ + "/none").inodes, 0u);
    disk_usage_cache cache;
    EXPECT_EQ(cache.of(upper()).inodes, 3u);
    write(upper() + "/etc/group", "x");
    EXPECT_EQ(cache.of(upper()).inodes, 3u); // remembered
    cache.forget(upper());
    EXPECT_EQ(cache.of(upper()).inodes, 4u);
}

} // namespace
} // namespace gantry::cri_native
