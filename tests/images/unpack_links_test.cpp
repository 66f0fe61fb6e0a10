// Hard links (case 13, frostyard/nbc#86).
#include <sys/xattr.h>

#include <fcntl.h>

#include "base/files.hpp"
#include "base/unique_fd.hpp"
#include "plugins/cri-native/helper/settle.hpp"
#include "tests/images/unpack_fixture.hpp"

namespace gantry::test {
namespace {

class unpack_links : public unpack_test {
protected:
    result<void> settle(cri_helper::layer_summary& summary, const std::vector<std::string>& below) {
        std::vector<base::unique_fd> owned;
        std::vector<int> lower;
        for (const auto& layer : below) {
            owned.emplace_back(::open((dir / layer).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            lower.push_back(owned.back().get());
        }
        const base::unique_fd root(::open((dir / "layer").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        return cri_helper::settle(root.get(), lower, summary, usage, false);
    }
};

TEST_F(unpack_links, hard_link_shares_the_inode) {
    ASSERT_TRUE(unpack(tar().file("a", "data").hardlink("d/b", "a").hardlink("c", "./d/b").str()));
    EXPECT_EQ(lstat("a")->st_ino, lstat("d/b")->st_ino);
    EXPECT_EQ(lstat("a")->st_nlink, 3u);
}

TEST_F(unpack_links, case_13_hard_link_out_of_the_root_is_refused) {
    ASSERT_TRUE(base::write_file_atomic(dir / "shadow", "host"));
    refuses(tar().hardlink("x", "../shadow").str(), {"entry \"x\"", "\"../shadow\"", "leaves the layer's root"});
    refuses(tar().hardlink("x", "a/../../shadow").str(), {"leaves the layer's root"});
    struct stat st {};
    ASSERT_EQ(::stat((dir / "shadow").c_str(), &st), 0);
    EXPECT_EQ(st.st_nlink, 1u);
}

TEST_F(unpack_links, case_13_hard_link_target_behind_a_symlink_is_refused) {
    ASSERT_TRUE(base::make_dirs(dir / "outside"));
    ASSERT_TRUE(base::write_file_atomic(dir / "outside/shadow", "host"));
    refuses(tar().symlink("d", dir / "outside").hardlink("x", "d/shadow").str(),
            {"entry \"x\"", "\"d\" is not a directory"});
}

TEST_F(unpack_links, hard_link_to_something_else_than_a_file_is_refused) {
    refuses(tar().symlink("s", "/etc/shadow").hardlink("x", "s").str(), {"entry \"x\"", "\"s\" is no regular file"});
    refuses(tar().dir("d").hardlink("x", "d").str(), {"no regular file"});
    refuses(tar().dir("d").hardlink("x", "/").str(), {"entry \"x\"", "is the root directory"});
}

TEST_F(unpack_links, hard_link_that_replaces_the_directory_of_its_target_is_refused) {
    refuses(tar().file("d/f").hardlink("d", "d/f").str(), {"entry \"d\"", "\"d/f\" lies below itself"});
}

TEST_F(unpack_links, whiteout_does_not_hide_a_link_of_its_own_layer) {
    ASSERT_TRUE(unpack(tar().file("tool", "lower").file("link", "old").str(), "lower"));
    auto summary = unpack(tar().hardlink("link", "tool").file(".wh.link").str());
    ASSERT_TRUE(summary);
    ASSERT_TRUE(settle(*summary, {"lower"}));
    EXPECT_EQ(content("link"), "lower");
}

TEST_F(unpack_links, writing_over_a_hard_link_leaves_its_twin) {
    ASSERT_TRUE(unpack(tar().file("a", "old").hardlink("b", "a").file("b", "new").str()));
    EXPECT_EQ(content("a"), "old");
    EXPECT_EQ(content("b"), "new");
}

TEST_F(unpack_links, hard_link_to_itself_changes_nothing) {
    ASSERT_TRUE(unpack(tar().file("a", "data").hardlink("a", "a").str()));
    EXPECT_EQ(content("a"), "data");
}

TEST_F(unpack_links, target_in_a_lower_layer_is_copied_up_with_all_it_has) {
    ASSERT_TRUE(unpack(tar()
                           .dir("d", 0700)
                           .add({.name = "d/tool",
                                 .mode = 04755,
                                 .uid = 3,
                                 .gid = 4,
                                 .mtime = 77,
                                 .pax = {{"SCHILY.xattr.user.note", "n"}}},
                                "lower")
                           .str(),
                       "lower"));
    auto summary = unpack(tar().hardlink("one", "d/tool").hardlink("two", "one").str());
    ASSERT_TRUE(summary);
    EXPECT_FALSE(summary->self_contained());
    const auto settled = settle(*summary, {"lower"});
    ASSERT_TRUE(settled) << settled.error().message;
    EXPECT_EQ(content("one"), "lower");
    const auto st = lstat("d/tool");
    EXPECT_EQ(st->st_nlink, 3u);
    EXPECT_EQ(st->st_mode & 07777, 04755u);
    EXPECT_EQ(st->st_uid, 3u);
    EXPECT_EQ(st->st_mtime, 77);
    EXPECT_EQ(xattr("two", "user.note"), "n");
    EXPECT_EQ(lstat("d")->st_mode & 07777, 0700u);
    EXPECT_EQ(lstat("d/tool", "lower")->st_nlink, 1u);
    EXPECT_EQ(summary->bytes, 5u);
}

TEST_F(unpack_links, target_that_no_layer_has_is_refused) {
    auto summary = unpack(tar().hardlink("x", "gone").str());
    ASSERT_TRUE(summary);
    ASSERT_TRUE(unpack(tar().file("other").str(), "lower"));
    const auto settled = settle(*summary, {"lower"});
    ASSERT_FALSE(settled);
    EXPECT_NE(settled.error().message.find("entry \"x\": its hard link target \"gone\" is in no layer"),
              std::string::npos);
}

TEST_F(unpack_links, target_hidden_by_a_layer_between_is_in_no_layer) {
    ASSERT_TRUE(unpack(tar().file("d/f", "old").file("e/f", "old").str(), "bottom"));
    ASSERT_TRUE(unpack(tar().file("d/.wh.f").file("e/.wh..wh..opq").str(), "middle"));
    for (const auto* target : {"d/f", "e/f"}) {
        auto summary = unpack(tar().hardlink("x", target).str());
        ASSERT_TRUE(summary);
        EXPECT_FALSE(settle(*summary, {"middle", "bottom"})) << target;
    }
}

TEST_F(unpack_links, lower_target_behind_a_symlink_is_in_no_layer) {
    ASSERT_TRUE(unpack(tar().symlink("d", "/etc").str(), "lower"));
    auto summary = unpack(tar().hardlink("x", "d/passwd").str());
    ASSERT_TRUE(summary);
    EXPECT_FALSE(settle(*summary, {"lower"}));
}

TEST_F(unpack_links, undescribed_directory_takes_after_the_one_below) {
    ASSERT_TRUE(unpack(tar().add({.name = "tmp", .type = '5', .mode = 01777, .uid = 9, .mtime = 55}).str(), "lower"));
    auto summary = unpack(tar().file("tmp/f").str());
    ASSERT_TRUE(summary);
    ASSERT_TRUE(settle(*summary, {"lower"}));
    EXPECT_EQ(lstat("tmp")->st_mode & 07777, 01777u);
    EXPECT_EQ(lstat("tmp")->st_uid, 9u);
    EXPECT_EQ(lstat("tmp")->st_mtime, 55);
}

} // namespace
} // namespace gantry::test
