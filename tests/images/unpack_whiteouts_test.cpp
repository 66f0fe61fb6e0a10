// Whiteouts as overlayfs sees them: layers are unpacked and then really mounted (containerd#6991, case 10).
#include <sched.h>
#include <sys/mount.h>

#include "base/files.hpp"
#include "tests/images/unpack_fixture.hpp"

namespace gantry::test {
namespace {

class unpack_whiteouts : public unpack_test {
protected:
    static void SetUpTestSuite() {
        ASSERT_EQ(::unshare(CLONE_NEWNS), 0) << "needs root";
        ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    }

    /// The names in `path` of the merged view of two layers.
    std::vector<std::string> merged(const std::string& lower, const std::string& upper, const std::string& path = "") {
        const auto below = unpack(lower, "lower"), above = unpack(upper, "layer");
        EXPECT_TRUE(below && above);
        EXPECT_TRUE(base::make_dirs(dir / "view"));
        std::string options = "lowerdir=" + (dir / "layer") + ":" + (dir / "lower");
        if (this->options.user_xattr) options += ",userxattr";
        EXPECT_EQ(::mount("overlay", (dir / "view").c_str(), "overlay", MS_RDONLY, options.c_str()), 0) << options;
        auto names = base::list_dir(dir / ("view/" + path));
        EXPECT_EQ(::umount((dir / "view").c_str()), 0);
        return names ? *names : std::vector<std::string>{"(" + names.error().message + ")"};
    }
    using names = std::vector<std::string>;
};

TEST_F(unpack_whiteouts, hides_a_lower_entry) {
    EXPECT_EQ(merged(tar().file("a").file("b").str(), tar().file(".wh.a").str()), names{"b"});
    EXPECT_TRUE(is_whiteout("a"));
    EXPECT_FALSE(exists(".wh.a"));
}

TEST_F(unpack_whiteouts, hides_a_lower_directory_with_all_it_holds) {
    EXPECT_EQ(merged(tar().file("d/a").file("e").str(), tar().file(".wh.d").str()), names{"e"});
}

TEST_F(unpack_whiteouts, of_a_missing_path_is_no_error) {
    EXPECT_EQ(merged(tar().file("a").str(), tar().file(".wh.nothing").file("no/such/.wh.dir").str()),
              (names{"a", "no"}));
}

TEST_F(unpack_whiteouts, never_hides_what_its_own_layer_holds) {
    const auto lower = tar().file("f", "old").str();
    EXPECT_EQ(merged(lower, tar().file("f", "new").file(".wh.f").str()), names{"f"});
    EXPECT_EQ(content("f"), "new");
    EXPECT_EQ(merged(lower, tar().file(".wh.f").file("f", "newer").str()), names{"f"});
    EXPECT_EQ(content("f"), "newer");
}

TEST_F(unpack_whiteouts, directory_made_anew_shows_nothing_of_the_lower_one_whatever_the_order) {
    const auto lower = tar().file("d/old").str();
    EXPECT_EQ(merged(lower, tar().file(".wh.d").dir("d").file("d/new").str(), "d"), names{"new"});
}

TEST_F(unpack_whiteouts, directory_made_anew_before_its_whiteout) {
    EXPECT_EQ(merged(tar().file("d/old").str(), tar().dir("d").file("d/new").file(".wh.d").str(), "d"), names{"new"});
}

TEST_F(unpack_whiteouts, directory_made_anew_without_an_entry_of_its_own) {
    EXPECT_EQ(merged(tar().file("d/old").str(), tar().file(".wh.d").file("d/new").str(), "d"), names{"new"});
}

TEST_F(unpack_whiteouts, opaque_hides_the_lower_layer_only_when_it_comes_last) {
    const auto lower = tar().file("d/old").str();
    EXPECT_EQ(merged(lower, tar().file("d/new").file("d/.wh..wh..opq").str(), "d"), names{"new"});
    EXPECT_EQ(xattr("d", "trusted.overlay.opaque"), "y");
}

TEST_F(unpack_whiteouts, opaque_hides_the_lower_layer_only_when_it_comes_first) {
    EXPECT_EQ(merged(tar().file("d/old").str(), tar().file("d/.wh..wh..opq").file("d/new").dir("d").str(), "d"),
              names{"new"});
}

TEST_F(unpack_whiteouts, opaque_root_is_told_to_the_store) {
    const auto done = unpack(tar().file(".wh..wh..opq").file("a").str());
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->opaque_root);
    EXPECT_FALSE(exists(".wh..wh..opq"));
}

TEST_F(unpack_whiteouts, case_10_user_namespace_gets_the_user_form) {
    options.user_xattr = true;
    EXPECT_EQ(merged(tar().file("d/old").str(), tar().file("d/.wh..wh..opq").file("d/new").str(), "d"), names{"new"});
    EXPECT_EQ(xattr("d", "user.overlay.opaque"), "y");
    EXPECT_EQ(xattr("d", "trusted.overlay.opaque"), std::nullopt);
}

TEST_F(unpack_whiteouts, bookkeeping_of_other_builders_is_ignored) {
    ASSERT_TRUE(unpack(tar().file(".wh..wh.aufs").file(".wh..wh.plnk/123.4").dir(".wh..wh.orph").file("a").str()));
    EXPECT_EQ(*base::list_dir(dir / "layer"), names{"a"});
    EXPECT_EQ(warnings.size(), 3u);
}

TEST_F(unpack_whiteouts, of_no_name_is_refused) {
    for (const std::string name : {".wh.", ".wh..", "d/.wh...", "a/.wh."})
        refuses(tar().file(name).str(), {"entry \"" + name + "\"", "whiteout of no name"});
    refuses(tar().file(".wh.d/f").str(), {"reserved prefix"});
}

TEST_F(unpack_whiteouts, device_0_0_in_the_archive_is_no_whiteout) {
    EXPECT_EQ(merged(tar().file("a").str(), tar().add({.name = "a", .type = '3'}).str()), names{"a"});
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("overlayfs's own mark"), std::string::npos);
}

TEST_F(unpack_whiteouts, type_changes_between_layers_show_the_upper_type) {
    const auto lower = tar().dir("to-file").file("to-file/x").symlink("to-dir", "/etc").file("to-link").str();
    const auto upper = tar().file("to-file").file("to-dir/y").symlink("to-link", "to-dir").str();
    EXPECT_EQ(merged(lower, upper, "to-dir"), names{"y"});
    EXPECT_TRUE(S_ISREG(lstat("to-file")->st_mode));
    EXPECT_TRUE(S_ISLNK(lstat("to-link")->st_mode));
}

} // namespace
} // namespace gantry::test
