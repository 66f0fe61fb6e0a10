// Types, owners, modes, times, xattrs and data of entries.
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <cstring>

#include "base/files.hpp"
#include "tests/images/unpack_fixture.hpp"

namespace gantry::test {
namespace {

using unpack_entries = unpack_test;

/// Many small files: in memory, where making and removing them costs little.
class unpack_many : public unpack_test {
protected:
    unpack_many() : unpack_test("/dev/shm") {}
};

/// security.capability for cap_net_raw+ep, as linux/capability.h lays it out.
std::string file_capability() {
    vfs_cap_data data{};
    data.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
    data.data[0].permitted = 1u << CAP_NET_RAW;
    return {reinterpret_cast<const char*>(&data), sizeof data};
}

TEST_F(unpack_entries, last_of_several_entries_of_a_name_wins_whatever_their_types) {
    ASSERT_TRUE(unpack(tar().file("a", "1").file("a", "2").str()));
    EXPECT_EQ(content("a"), "2");
    ASSERT_TRUE(unpack(tar().file("b").dir("b").file("b/c").str()));
    EXPECT_TRUE(exists("b/c"));
    ASSERT_TRUE(unpack(tar().file("d/e/f").dir("d/e").file("d", "file now").str()));
    EXPECT_EQ(content("d"), "file now");
    ASSERT_TRUE(unpack(tar().dir("s").file("s/x").symlink("s", "elsewhere").str()));
    EXPECT_TRUE(S_ISLNK(lstat("s")->st_mode));
    ASSERT_TRUE(unpack(tar().symlink("t", "elsewhere").dir("t").file("t/x").str()));
    EXPECT_TRUE(exists("t/x"));
}

TEST_F(unpack_entries, directory_named_twice_keeps_its_content_and_takes_the_last_mode) {
    ASSERT_TRUE(unpack(tar().dir("d", 0700).file("d/x").dir("d", 0711).str()));
    EXPECT_TRUE(exists("d/x"));
    EXPECT_EQ(lstat("d")->st_mode & 07777, 0711u);
}

TEST_F(unpack_entries, content_of_a_replaced_directory_is_not_settled) {
    const auto done = unpack(tar().file("d/sub/x").hardlink("d/y", "lower").file("d").str());
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->self_contained());
}

TEST_F(unpack_entries, setuid_and_capability_survive_the_change_of_owner) {
    ASSERT_TRUE(unpack(tar()
                           .add({.name = "tool",
                                 .mode = 06755,
                                 .uid = 1000,
                                 .gid = 1000,
                                 .pax = {{"SCHILY.xattr.security.capability", file_capability()}}},
                                "x")
                           .str()));
    const auto st = lstat("tool");
    EXPECT_EQ(st->st_mode & 07777, 06755u);
    EXPECT_EQ(st->st_uid, 1000u);
    EXPECT_EQ(xattr("tool", "security.capability"), file_capability());
}

TEST_F(unpack_entries, xattrs_are_filtered) {
    ASSERT_TRUE(
        unpack(tar()
                   .add({.name = "f",
                         .pax = {{"SCHILY.xattr.user.mine", "kept"},
                                 {"SCHILY.xattr.user.overlay.opaque", "y"},
                                 {"SCHILY.xattr.trusted.overlay.redirect", "/etc"},
                                 {"SCHILY.xattr.trusted.other", "t"},
                                 {"SCHILY.xattr.security.selinux", "label"}}})
                   .add({.name = "d", .type = '5', .mode = 0755, .pax = {{"SCHILY.xattr.trusted.overlay.opaque", "y"}}})
                   .str()));
    EXPECT_EQ(xattr("f", "user.mine"), "kept");
    for (const auto* key : {"user.overlay.opaque", "trusted.overlay.redirect", "trusted.other", "security.selinux"})
        EXPECT_EQ(xattr("f", key), std::nullopt) << key;
    EXPECT_EQ(xattr("d", "trusted.overlay.opaque"), std::nullopt);
    EXPECT_EQ(warnings.size(), 5u);
}

TEST_F(unpack_entries, xattr_that_a_symlink_cannot_have_is_a_warning) {
    ASSERT_TRUE(
        unpack(tar().add({.name = "l", .type = '2', .link = "x", .pax = {{"SCHILY.xattr.user.a", "b"}}}).str()));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("entry \"l\": xattr \"user.a\""), std::string::npos);
}

TEST_F(unpack_entries, devices_and_fifos_are_made) {
    ASSERT_TRUE(unpack(tar()
                           .add({.name = "null", .type = '3', .mode = 0666, .gid = 5, .major = 1, .minor = 3})
                           .add({.name = "disk", .type = '4', .mode = 0600, .major = 259, .minor = 7})
                           .add({.name = "pipe", .type = '6', .mode = 0620})
                           .str()));
    EXPECT_EQ(lstat("null")->st_rdev, makedev(1, 3));
    EXPECT_EQ(lstat("null")->st_mode, static_cast<mode_t>(S_IFCHR | 0666));
    EXPECT_EQ(lstat("null")->st_gid, 5u);
    EXPECT_EQ(lstat("disk")->st_rdev, makedev(259, 7));
    EXPECT_EQ(lstat("pipe")->st_mode, static_cast<mode_t>(S_IFIFO | 0620));
}

TEST_F(unpack_entries, devices_are_skipped_with_a_note_when_switched_off) {
    options.device_nodes = false;
    ASSERT_TRUE(
        unpack(tar().add({.name = "null", .type = '3', .major = 1, .minor = 3}).add({.name = "p", .type = '6'}).str()));
    EXPECT_FALSE(exists("null"));
    EXPECT_TRUE(exists("p"));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("entry \"null\""), std::string::npos);
}

TEST_F(unpack_entries, times_before_1970_and_after_2500_and_in_nanoseconds) {
    constexpr std::int64_t year_2400 = 13'569'465'600;
    ASSERT_TRUE(unpack(tar()
                           .add({.name = "old", .mtime = -86400, .base256 = true})
                           .add({.name = "far", .mtime = year_2400, .base256 = true})
                           .add({.name = "fine", .pax = {{"mtime", "1234567890.123456789"}}})
                           .add({.name = "beyond", .pax = {{"mtime", "16725225600.5"}}})
                           .str()));
    EXPECT_EQ(lstat("old")->st_mtime, -86400);
    EXPECT_EQ(lstat("far")->st_mtime, year_2400);
    EXPECT_EQ(lstat("fine")->st_mtime, 1234567890);
    EXPECT_EQ(lstat("fine")->st_mtim.tv_nsec, 123456789);
    EXPECT_TRUE(exists("beyond")); // the file system may clamp it
}

TEST_F(unpack_entries, directory_time_is_not_that_of_its_last_child) {
    ASSERT_TRUE(
        unpack(tar().add({.name = "d", .type = '5', .mode = 0755, .mtime = 12345}).file("d/a").file("d/b").str()));
    EXPECT_EQ(lstat("d")->st_mtime, 12345);
}

TEST_F(unpack_entries, numbers_in_base_256) {
    ASSERT_TRUE(unpack(tar().add({.name = "f", .uid = 3'000'000, .gid = 4'000'000, .base256 = true}, "data").str()));
    EXPECT_EQ(lstat("f")->st_uid, 3'000'000u);
    EXPECT_EQ(lstat("f")->st_gid, 4'000'000u);
    EXPECT_EQ(content("f"), "data");
}

TEST_F(unpack_entries, owners_that_no_kernel_has_are_refused) {
    refuses(tar().add({.name = "f", .pax = {{"uid", "4294967295"}}}).str(), {"entry \"f\"", "owner 4294967295"});
    refuses(tar().add({.name = "f", .pax = {{"gid", "99999999999"}}}).str(), {"entry \"f\"", "group 99999999999"});
}

TEST_F(unpack_entries, sparse_file_past_8_gib_takes_no_space) {
    constexpr std::uint64_t size = (8ull << 30) + 4096;
    const std::string data(512, 'z');
    ASSERT_TRUE(unpack(tar().gnu_sparse("big", size, size - 512, data).gnu_sparse("hole", size, 0, data).str()));
    EXPECT_EQ(static_cast<std::uint64_t>(lstat("big")->st_size), size);
    EXPECT_EQ(static_cast<std::uint64_t>(lstat("hole")->st_size), size);
    EXPECT_LT(lstat("big")->st_blocks, 64);
    EXPECT_EQ(usage.bytes.load(), 1024u);
}

TEST_F(unpack_entries, size_past_8_gib_in_a_header_without_the_data_is_a_truncated_archive) {
    refuses(tar().add({.name = "huge", .base256 = true, .size = 9ll << 30}, "x").unfinished(),
            {"entry \"huge\"", "Truncated"});
    refuses(tar().add({.name = "huge", .pax = {{"size", "99999999999"}}}, "x").unfinished(),
            {"entry \"huge\"", "Truncated"});
}

TEST_F(unpack_entries, truncation_at_every_block_is_an_error_or_a_clean_end) {
    const auto whole = tar().file("a", std::string(1500, 'a')).dir("d").file("d/b", "b").unfinished();
    for (std::size_t cut = 1; cut < whole.size(); cut += 128) {
        const bool boundary = cut == 2048 || cut == 2560; // between entries: the digest decides there
        EXPECT_EQ(unpack(whole.substr(0, cut)).ok(), boundary) << "cut at " << cut;
    }
}

TEST_F(unpack_entries, what_is_no_tar_is_refused) { refuses(std::string(4096, 'x'), {"Unrecognized archive format"}); }

TEST_F(unpack_entries, empty_layers_are_layers) {
    EXPECT_TRUE(unpack(std::string(1024, '\0')));
    EXPECT_TRUE(unpack(std::string()));
}

TEST_F(unpack_entries, byte_limit_counts_data) {
    usage.byte_limit = 1000;
    refuses(tar().file("a", std::string(600, 'a')).file("b", std::string(600, 'b')).str(),
            {"entry \"b\"", "more than 1000 bytes"}, code::resource);
}

TEST_F(unpack_entries, inode_limit_counts_entries_and_implied_parents) {
    usage.inode_limit = 4;
    refuses(tar().file("a/b/c/d").file("e").str(), {"entry \"e\"", "more than 4 entries"}, code::resource);
}

TEST_F(unpack_entries, case_12_error_names_the_entry_and_the_system_call) {
    const auto archive = tar().add({.name = "etc/x", .uid = 1234}, "x").str();
    const pid_t child = ::fork(); // gives up CAP_CHOWN for good
    if (child == 0) {
        __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
        __user_cap_data_struct data[2]{};
        ::syscall(SYS_capget, &header, data);
        data[0].effective &= ~(1u << CAP_CHOWN);
        ::syscall(SYS_capset, &header, data);
        const auto done = unpack(archive);
        const bool right = !done && done.error().message == "entry \"etc/x\": fchown: Operation not permitted" &&
                           done.error().sys_errno == EPERM && done.error().code == code::permission;
        ::_exit(right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(unpack_many, hundred_thousand_entries) {
    usage.inode_limit = 200'000;
    tar archive;
    for (int i = 0; i < 100'000; ++i) archive.file("d" + std::to_string(i / 1000) + "/f" + std::to_string(i), "");
    const auto done = unpack(archive.str());
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->inodes, 100'100u);
}

// A cheap fuzzer that runs everywhere: whatever a damaged archive does, it stays in its directory.
TEST_F(unpack_many, damaged_archives_touch_nothing_outside) {
    ASSERT_TRUE(base::write_file_atomic(dir / "outside", "host"));
    const auto whole = tar()
                           .dir("d")
                           .file("d/a", "data")
                           .symlink("d/l", "../../outside")
                           .hardlink("h", "d/a")
                           .file("d/.wh.x")
                           .add({.name = "p", .pax = {{"path", "d/long"}, {"SCHILY.xattr.user.a", "b"}}}, "pax")
                           .gnu_sparse("s", 1 << 20, 4096, "sparse")
                           .str();
    usage.inode_limit = 1'000'000;
    options.device_nodes = false;
    unsigned seed = 20231114;
    const auto random = [&] { return seed = seed * 1664525u + 1013904223u, seed >> 8; };
    int accepted = 0;
    for (int round = 0; round < 1500; ++round) {
        auto damaged = whole;
        for (unsigned i = 0, n = 1 + random() % 4; i < n; ++i)
            damaged[random() % damaged.size()] = static_cast<char>(random());
        // Make most of them pass the checksum, or nothing behind it is reached.
        for (std::size_t at = 0; at + 512 <= damaged.size(); at += 512) {
            if (std::memcmp(damaged.data() + at + 257, "ustar", 5) != 0 || random() % 8 == 0) continue;
            std::memset(damaged.data() + at + 148, ' ', 8);
            unsigned sum = 0;
            for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(damaged[at + i]);
            std::snprintf(damaged.data() + at + 148, 7, "%06o", sum);
        }
        accepted += unpack(damaged).ok() ? 1 : 0;
        ASSERT_TRUE(base::remove_tree(dir / "layer"));
    }
    EXPECT_GT(accepted, 100); // the loop reaches the applier
    EXPECT_EQ(*base::read_file(dir / "outside"), "host");
    EXPECT_EQ(*base::list_dir(dir.path()), std::vector<std::string>{"outside"});
}

} // namespace
} // namespace gantry::test
