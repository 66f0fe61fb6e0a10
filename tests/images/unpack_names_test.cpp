// Names of entries: where they may lead (cases 13 and 14, docker/cli#7111, frostyard/nbc#85).
#include "base/files.hpp"
#include "tests/images/unpack_fixture.hpp"

namespace gantry::test {
namespace {

using unpack_names = unpack_test;

TEST_F(unpack_names, parent_traversal_is_refused) {
    for (const std::string name : {"../escaped", "a/../../escaped", "/../escaped", "./../escaped", ".."})
        refuses(tar().file(name).str(), {"entry \"" + name + "\"", "leaves the layer's root"});
    EXPECT_FALSE(base::read_file(dir / "escaped"));
}

TEST_F(unpack_names, dots_within_the_root_are_cleaned) {
    ASSERT_TRUE(unpack(tar().file("a/../b").file("./c/./d").file("//e//f").str()));
    EXPECT_TRUE(exists("b"));
    EXPECT_FALSE(exists("a"));
    EXPECT_TRUE(exists("c/d"));
    EXPECT_TRUE(exists("e/f"));
}

TEST_F(unpack_names, absolute_names_stay_inside) {
    ASSERT_TRUE(unpack(tar().file("/etc/hostname", "image").str()));
    EXPECT_EQ(content("etc/hostname"), "image");
}

TEST_F(unpack_names, case_13_entry_below_a_symlink_of_the_same_layer_is_refused) {
    ASSERT_TRUE(base::make_dirs(dir / "outside"));
    refuses(tar().symlink("x", dir / "outside").file("x/p").str(), {"entry \"x/p\"", "\"x\" is a symbolic link"});
    refuses(tar().symlink("up", "../outside").file("up/p").str(), {"entry \"up/p\""});
    refuses(tar().symlink("up", "../outside").dir("up/d").str(), {"entry \"up/d\""});
    refuses(tar().symlink("up", "../outside").file("up/.wh.p").str(), {"entry \"up/.wh.p\""});
    refuses(tar().symlink("up", "../outside").file("up/.wh..wh..opq").str(), {"entry \"up/.wh..wh..opq\""});
    EXPECT_TRUE(base::list_dir(dir / "outside")->empty());
}

TEST_F(unpack_names, case_13_symlink_swapped_in_for_a_directory_is_refused_for_writes) {
    ASSERT_TRUE(base::make_dirs(dir / "outside"));
    refuses(tar().dir("d").file("d/one").symlink("d", dir / "outside").file("d/two").str(), {"entry \"d/two\""});
    EXPECT_TRUE(base::list_dir(dir / "outside")->empty());
}

TEST_F(unpack_names, file_over_a_symlink_replaces_the_link) {
    ASSERT_TRUE(base::write_file_atomic(dir / "victim", "host"));
    ASSERT_TRUE(unpack(tar().symlink("f", dir / "victim").file("f", "image").str()));
    EXPECT_EQ(content("f"), "image");
    EXPECT_EQ(*base::read_file(dir / "victim"), "host");
}

TEST_F(unpack_names, case_14_empty_name_is_refused_and_the_root_keeps_its_mode) {
    const auto before = [&] {
        EXPECT_TRUE(unpack(tar().file("a").str()));
        return lstat("")->st_mode;
    }();
    refuses(tar().add({.name = "", .type = '5', .mode = 0777}).str(), {"entry \"\"", "name is empty"});
    EXPECT_EQ(lstat("")->st_mode, before);
}

TEST_F(unpack_names, root_entry_sets_the_root_directory) {
    ASSERT_TRUE(unpack(
        tar().add({.name = "./", .type = '5', .mode = 0555, .uid = 7, .gid = 8, .mtime = 1000}).file("a").str()));
    const auto st = lstat("");
    EXPECT_EQ(st->st_mode & 07777, 0555u);
    EXPECT_EQ(st->st_uid, 7u);
    EXPECT_EQ(st->st_gid, 8u);
    EXPECT_EQ(st->st_mtime, 1000);
}

TEST_F(unpack_names, root_can_be_nothing_but_a_directory) {
    refuses(tar().file(".", "x").str(), {"only a directory can be the layer's root"});
    refuses(tar().add({.name = ".", .type = '2', .link = "/etc"}).str(), {"only a directory can be the layer's root"});
}

TEST_F(unpack_names, long_names_by_pax_and_by_gnu) {
    const std::string dirs = std::string(120, 'a') + "/" + std::string(120, 'b') + "/";
    const std::string pax = dirs + "pax", gnu = dirs + "gnu";
    ASSERT_TRUE(unpack(tar().add({.name = "short", .pax = {{"path", pax}}}, "1").gnu_long_name(gnu, "2").str()));
    EXPECT_EQ(content(pax), "1");
    EXPECT_EQ(content(gnu), "2");
}

TEST_F(unpack_names, names_past_the_limits_are_refused) {
    std::string deep;
    while (deep.size() <= 4096) deep += std::string(200, 'd') + "/";
    refuses(tar().gnu_long_name(deep + "f", "x").str(), {"longer than 4096 bytes"});
    refuses(tar().gnu_long_name(std::string(256, 'n'), "x").str(), {"longer than 255 bytes"});
    std::string levels;
    for (int i = 0; i < 256; ++i) levels += "d/";
    refuses(tar().gnu_long_name(levels + "f", "x").str(), {"more than 256 directories deep"});
}

TEST_F(unpack_names, bytes_are_kept_whatever_their_encoding) {
    const std::string latin = "caf\xe9", utf8 = "\xc3\xbcml\xc3\xa4ut", pax = "\xe6\x97\xa5\xe6\x9c\xac";
    ASSERT_TRUE(unpack(tar().file(latin).file(utf8).add({.name = "x", .pax = {{"path", pax}}}).str()));
    EXPECT_TRUE(exists(latin));
    EXPECT_TRUE(exists(utf8));
    EXPECT_TRUE(exists(pax));
}

TEST_F(unpack_names, pax_name_that_is_not_utf8_is_refused_not_renamed) {
    refuses(tar().add({.name = "x", .pax = {{"path", "caf\xe9"}}}).str(), {"Pathname"});
    ASSERT_TRUE(unpack(tar().add({.name = "x", .pax = {{"hdrcharset", "BINARY"}, {"path", "caf\xe9"}}}).str()));
    EXPECT_TRUE(exists("caf\xe9"));
}

TEST_F(unpack_names, parent_that_is_a_file_is_refused) {
    refuses(tar().file("f").file("f/g").str(), {"entry \"f/g\"", "\"f\" is not a directory"});
}

TEST_F(unpack_names, missing_parents_are_0755_root) {
    const auto done = unpack(tar().add({.name = "a/b/c", .uid = 5, .gid = 5}, "x").str());
    ASSERT_TRUE(done);
    for (const auto* parent : {"a", "a/b"}) {
        EXPECT_EQ(lstat(parent)->st_mode & 07777, 0755u);
        EXPECT_EQ(lstat(parent)->st_uid, 0u);
    }
    EXPECT_EQ(done->implied, (std::set<std::string>{"a", "a/b"}));
}

TEST_F(unpack_names, described_directory_is_not_implied_whatever_the_order) {
    const auto done = unpack(tar().file("a/f").dir("a", 01777).str());
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->implied.empty());
    EXPECT_EQ(lstat("a")->st_mode & 07777, 01777u);
}

} // namespace
} // namespace gantry::test
