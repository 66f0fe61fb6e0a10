// The store's own promises: names, sharing, removal, pins.
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/files.hpp"
#include "tests/images/store_fixture.hpp"

namespace gantry::test {
namespace {

class image_store : public store_test {
protected:
    test_image image(const std::string& what, const std::vector<std::string>& tags) {
        return {.layers = {plain_layer(base_layer), plain_layer(tar().file(what, what).str())}, .tags = tags};
    }
    const std::string base_layer = tar().file("base", "base").str();
};

TEST_F(image_store, resolves_by_tag_id_and_prefix) {
    const auto a = image("a", {"a:1"});
    load_one(docker_archive({a}));
    const auto hex = a.id().substr(7);
    for (const auto& name :
         {std::string("a:1"), std::string("docker.io/library/a:1"), a.id(), hex, hex.substr(0, 12)}) {
        const auto found = store->resolve(name);
        ASSERT_TRUE(found) << name;
        EXPECT_EQ(found->id, a.id());
    }
    EXPECT_EQ(store->resolve("a").error().code, code::not_found); // :latest
    EXPECT_EQ(store->resolve(hex.substr(0, 11)).error().code, code::not_found);
    EXPECT_EQ(store->resolve("sha256:" + std::string(64, '0')).error().code, code::not_found);
    const auto bad = store->resolve("A B");
    EXPECT_EQ(bad.error().code, code::invalid);
    EXPECT_EQ(bad.error().detail, R"({"reason":"InvalidImageName"})");
}

TEST_F(image_store, images_share_layers_and_count_them_once) {
    load_one(docker_archive({image("a", {"a:1"})}));
    load_one(docker_archive({image("b", {"b:1"})}));
    EXPECT_EQ(layer_dirs().size(), 3u);
    EXPECT_EQ(store->fs_info().used_bytes, 4u + 1u + 1u);
    EXPECT_EQ(store->fs_info().inodes_used, 3u);
    EXPECT_EQ(store->fs_info().mountpoint, options.dir);
    ASSERT_TRUE(store->remove("a:1"));
    EXPECT_EQ(layer_dirs().size(), 2u);
    EXPECT_EQ(content(*store->resolve("b:1"), 0, "base"), "base");
    ASSERT_TRUE(store->remove("b:1"));
    EXPECT_TRUE(layer_dirs().empty());
    EXPECT_TRUE(staging_is_empty());
    EXPECT_TRUE(store->list().empty());
}

TEST_F(image_store, loading_the_same_again_changes_nothing) {
    const auto archive = docker_archive({image("a", {"a:1"})});
    const auto first = load_one(archive);
    EXPECT_EQ(load_one(archive), first);
    EXPECT_EQ(layer_dirs().size(), 2u);
}

TEST_F(image_store, tag_moves_and_the_old_image_stays_by_id) {
    const auto old = load_one(docker_archive({image("old", {"app:1", "app:old"})}));
    const auto fresh = load_one(docker_archive({image("new", {"app:1"})}));
    EXPECT_EQ(store->resolve("app:1")->id, fresh.id);
    EXPECT_EQ(store->resolve("app:old")->id, old.id);
    EXPECT_EQ(store->list().size(), 2u);
}

TEST_F(image_store, reference_is_untagged_and_the_last_one_deletes) {
    load_one(docker_archive({image("a", {"a:1", "a:2"})}));
    ASSERT_TRUE(store->remove("a:1"));
    EXPECT_FALSE(store->resolve("a:1"));
    EXPECT_TRUE(store->resolve("a:2"));
    ASSERT_TRUE(store->remove("a:2"));
    EXPECT_TRUE(store->list().empty());
}

TEST_F(image_store, last_tag_of_a_repository_takes_its_digest_along) {
    const auto loaded = load_one(oci_archive({.layers = {gzip_layer(base_layer)}, .tags = {"a:1"}}));
    ASSERT_EQ(loaded.repo_digests.size(), 1u);
    ASSERT_TRUE(store->remove("a:1"));
    EXPECT_TRUE(store->list().empty());
}

TEST_F(image_store, id_deletes_with_all_references) {
    const auto loaded = load_one(docker_archive({image("a", {"a:1", "a:2"})}));
    ASSERT_TRUE(store->remove(loaded.id));
    EXPECT_TRUE(store->list().empty());
    EXPECT_TRUE(store->remove(loaded.id)); // nothing there: done
    EXPECT_TRUE(store->remove("never:seen"));
}

TEST_F(image_store, image_in_use_is_not_deleted_and_the_error_names_the_users) {
    const auto loaded = load_one(docker_archive({image("a", {"a:1", "a:2"})}));
    ASSERT_TRUE(store->pin(loaded.id, "container-1"));
    ASSERT_TRUE(store->pin(loaded.id, "container-2"));
    EXPECT_TRUE(store->remove("a:2")); // only untags
    for (const auto& name : {std::string("a:1"), loaded.id}) {
        const auto removed = store->remove(name);
        ASSERT_FALSE(removed);
        EXPECT_EQ(removed.error().code, code::busy);
        EXPECT_NE(removed.error().message.find("container-1, container-2"), std::string::npos)
            << removed.error().message;
    }
    EXPECT_TRUE(store->resolve("a:1"));
    store->unpin(loaded.id, "container-1");
    EXPECT_FALSE(store->remove("a:1"));
    store->unpin(loaded.id, "container-2");
    EXPECT_TRUE(store->remove("a:1"));
    EXPECT_EQ(store->pin(loaded.id, "container-3").error().code, code::not_found);
}

TEST_F(image_store, survives_reopening) {
    const auto loaded = load_one(oci_archive({.layers = {gzip_layer(base_layer)}, .tags = {"a:1"}}));
    reopen();
    EXPECT_EQ(store->list(), std::vector<images::image>{loaded});
}

/// A mount of its own where mounts are shared, as systemd makes the root of a machine.
class shared_mount {
public:
    explicit shared_mount(const std::string& dir) {
        EXPECT_TRUE(base::make_dirs(dir));
        dir_ = std::filesystem::canonical(dir); // as the mount table has it
        EXPECT_EQ(::mount(dir_.c_str(), dir_.c_str(), nullptr, MS_BIND, nullptr), 0);
        EXPECT_EQ(::mount(nullptr, dir_.c_str(), nullptr, MS_SHARED, nullptr), 0);
    }
    ~shared_mount() { ::umount2(dir_.c_str(), MNT_DETACH); }
    shared_mount(const shared_mount&) = delete;
    shared_mount& operator=(const shared_mount&) = delete;

    int mounts() const { ///< on the directory and below
        std::ifstream table("/proc/self/mountinfo");
        int count = 0;
        for (std::string line; std::getline(table, line);) count += line.find(" " + dir_) != std::string::npos;
        return count;
    }

private:
    std::string dir_;
};

TEST_F(image_store, leaves_no_mount_where_mounts_are_shared) {
    const shared_mount shared(dir / "shared");
    store.reset();
    options.dir = dir / "shared" + "/store";
    reopen();
    load_one(oci_archive({.layers = {gzip_layer(base_layer)}, .tags = {"a:1"}}));
    EXPECT_EQ(shared.mounts(), 1);
    EXPECT_TRUE(staging_is_empty());
    reopen();
    store.reset();
}

TEST_F(image_store, is_open_once) {
    const auto second = images::image_store::open(options);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, code::busy);
}

TEST_F(image_store, forgets_an_image_whose_layer_somebody_deleted) {
    const auto loaded = load_one(docker_archive({image("a", {"a:1"})}));
    store.reset();
    ASSERT_TRUE(base::remove_tree(loaded.layers[0]));
    reopen();
    EXPECT_TRUE(store->list().empty());
    EXPECT_EQ(load_one(docker_archive({image("a", {"a:1"})})).id, loaded.id);
    EXPECT_EQ(content(*store->resolve("a:1"), 0, "base"), "base");
}

TEST_F(image_store, refuses_an_index_it_did_not_write) {
    store.reset();
    for (const auto* text : {"{}", "not json", R"({"format":2})"}) {
        ASSERT_TRUE(base::write_file_atomic(options.dir + "/index.json", text));
        const auto opened = images::image_store::open(options);
        ASSERT_FALSE(opened);
        EXPECT_NE(opened.error().message.find("index.json"), std::string::npos);
    }
}

TEST_F(image_store, loads_and_removals_at_the_same_time_agree) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 3; ++round) {
                const auto name = "n" + std::to_string(i) + ":1";
                const auto archive = file_with(docker_archive({image(name.substr(0, 2), {name})}));
                const auto loaded = store->load(archive.get());
                EXPECT_TRUE(loaded) << loaded.error().message;
                const auto found = store->resolve(name);
                ASSERT_TRUE(found);
                EXPECT_EQ(content(*found, 0, "base"), "base");
                if (round == 2) continue;
                EXPECT_TRUE(store->remove(name));
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(store->list().size(), 4u);
    EXPECT_EQ(layer_dirs().size(), 5u); // one base for all
    EXPECT_TRUE(staging_is_empty());
}

} // namespace
} // namespace gantry::test
