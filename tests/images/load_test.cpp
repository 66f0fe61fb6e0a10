// Archives through the helper into the store: formats, digests, limits.
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "base/files.hpp"
#include "plugins/cri-native/helper/digest.hpp"
#include "tests/images/store_fixture.hpp"

namespace gantry::test {
namespace {

using base::json::array;
using base::json::object;
using image_load = store_test;

const std::string layer_a = tar().file("a", "from a").str();
const std::string layer_b = tar().file("b", "from b").file("shared", "upper").str();

TEST_F(image_load, docker_archive_with_several_images_and_tags) {
    const test_image one{.layers = {plain_layer(layer_a)}, .tags = {"one:v1", "registry.io/team/one:v1"}};
    const test_image two{.layers = {plain_layer(layer_a), gzip_layer(layer_b)}, .tags = {"two"}};
    const auto loaded = load(docker_archive({one, two}));
    ASSERT_TRUE(loaded) << loaded.error().message;
    ASSERT_EQ(loaded->size(), 2u);
    EXPECT_EQ((*loaded)[0].id, one.id());
    EXPECT_EQ((*loaded)[0].refs, (std::vector<std::string>{"docker.io/library/one:v1", "registry.io/team/one:v1"}));
    EXPECT_EQ((*loaded)[1].refs, std::vector<std::string>{"docker.io/library/two:latest"});
    const auto image = store->resolve("two");
    ASSERT_TRUE(image);
    ASSERT_EQ(image->layers.size(), 2u);
    EXPECT_EQ(content(*image, 0, "a"), "from a");
    EXPECT_EQ(content(*image, 1, "b"), "from b");
    EXPECT_EQ(image->layers[0], store->resolve("one:v1")->layers[0]);
    EXPECT_TRUE(image->repo_digests.empty());
    EXPECT_EQ(image->size, 17u);
}

TEST_F(image_load, oci_layout_has_a_digest_that_resolves) {
    oci_layout layout;
    const test_image image{.layers = {gzip_layer(layer_a)}};
    const auto descriptor = layout.manifest(image);
    layout.entry(descriptor, "registry.io/app:v1");
    const auto loaded = load_one(layout.str());
    const auto name = "registry.io/app@" + std::string(descriptor.at("digest").as_string());
    EXPECT_EQ(loaded.repo_digests, std::vector<std::string>{name});
    EXPECT_EQ(store->resolve(name)->id, image.id());
    EXPECT_EQ(store->resolve("registry.io/app:another@" + name.substr(name.find('@') + 1))->id,
              image.id()); // digest wins
}

TEST_F(image_load, archive_compressed_as_a_whole) {
    const auto archive = docker_archive({{.layers = {plain_layer(layer_a)}, .tags = {"a"}}});
    EXPECT_EQ(content(load_one(gzip(archive)), 0, "a"), "from a");
    EXPECT_TRUE(store->remove("a"));
    EXPECT_EQ(content(load_one(zstd(archive)), 0, "a"), "from a");
}

TEST_F(image_load, archive_from_a_pipe) {
    const auto archive = oci_archive({.layers = {gzip_layer(layer_a)}, .tags = {"a:1"}});
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    std::thread writer([&] {
        EXPECT_EQ(::write(ends[1], archive.data(), archive.size()), static_cast<ssize_t>(archive.size()));
        ::close(ends[1]);
    });
    const auto loaded = store->load(ends[0]);
    writer.join();
    ::close(ends[0]);
    EXPECT_TRUE(loaded) << loaded.error().message;
}

TEST_F(image_load, case_15_zstd_under_oci_and_docker_media_types) {
    for (const std::string type :
         {"application/vnd.oci.image.layer.v1.tar+zstd", "application/vnd.docker.image.rootfs.diff.tar.gzip",
          "application/vnd.docker.image.rootfs.diff.tar.zstd", "application/vnd.oci.image.layer.v1.tar"}) {
        auto layer = zstd_layer(tar().file("a", type).str());
        layer.media_type = type;
        EXPECT_EQ(content(load_one(oci_archive({.layers = {layer}, .tags = {"z:1"}})), 0, "a"), type);
    }
}

TEST_F(image_load, several_gzip_members_and_zstd_frames_are_one_layer) {
    const auto bytes = tar().file("a", std::string(3000, 'a')).str();
    const auto halves = [&](auto&& pack) { return pack(bytes.substr(0, 1000)) + pack(bytes.substr(1000)); };
    const auto gz = load_one(oci_archive({.layers = {{.packed = halves(gzip), .tar = bytes}}, .tags = {"g:1"}}));
    EXPECT_EQ(content(gz, 0, "a").size(), 3000u);
    ASSERT_TRUE(store->remove("g:1"));
    const auto zst = load_one(oci_archive({.layers = {{.packed = halves(zstd), .tar = bytes}}, .tags = {"z:1"}}));
    EXPECT_EQ(content(zst, 0, "a").size(), 3000u);
}

TEST_F(image_load, unknown_compression_is_named) {
    const test_layer xz{.packed = std::string("\xfd\x37zXZ\0\0\0\0\0\0\0", 12), .tar = layer_a};
    refuses(oci_archive({.layers = {xz}, .tags = {"x:1"}}), {"layer sha256:", "xz compression"}, code::unsupported);
    const test_layer bzip2{.packed = "BZh91AY&SY....", .tar = layer_a};
    refuses(oci_archive({.layers = {bzip2}, .tags = {"x:1"}}), {"bzip2 compression"}, code::unsupported);
    refuses(oci_archive({.layers = {{.packed = "no tar at all", .tar = layer_a}}, .tags = {"x:1"}}), {"layer sha256:"});
}

TEST_F(image_load, wrong_diff_id_is_refused) {
    test_image image{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}};
    image.diff_ids = {cri_helper::digest_of("something else")};
    refuses(docker_archive({image}), {"layer " + image.diff_ids[0], "has diffID " + cri_helper::digest_of(layer_a)});
}

TEST_F(image_load, bytes_after_the_end_of_a_tar_count_for_its_diff_id) {
    const auto longer = layer_a + std::string(8192, '\0');
    EXPECT_EQ(content(load_one(docker_archive({{.layers = {gzip_layer(longer)}, .tags = {"a:1"}}})), 0, "a"), "from a");
}

TEST_F(image_load, wrong_blob_digests_are_refused) {
    const test_image image{.layers = {gzip_layer(layer_a)}, .tags = {"a:1"}};
    oci_layout layer;
    layer.image(image);
    auto changed = image.layers[0].packed;
    changed[4] ^= 1; // the time in gzip's header: the content is the same
    layer.damage(cri_helper::digest_of(image.layers[0].packed), changed);
    refuses(layer.str(), {"its blob should have digest " + cri_helper::digest_of(image.layers[0].packed)});

    oci_layout config;
    config.image(image);
    auto other = image.config();
    other[other.find("2023")] = '3';
    config.damage(image.id(), other);
    refuses(config.str(), {"blob " + image.id() + " has digest"});
}

TEST_F(image_load, blob_of_another_size_than_its_descriptor_says_is_refused) {
    oci_layout layout;
    const test_image image{.layers = {gzip_layer(layer_a)}, .tags = {"a:1"}};
    layout.image(image);
    layout.damage(cri_helper::digest_of(image.layers[0].packed), image.layers[0].packed + "x");
    refuses(layout.str(), {"its descriptor says otherwise"});
}

TEST_F(image_load, config_that_does_not_match_its_name_is_refused) {
    const test_image image{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}};
    auto archive = docker_archive({image});
    archive.replace(archive.find("2023-11-14"), 10, "2023-11-15");
    refuses(archive, {"image config " + image.id() + " has digest"});
}

TEST_F(image_load, damaged_and_cut_compressed_layers_are_refused) {
    const auto big = tar().file("a", std::string(100'000, 'a')).str();
    const auto cut = [&](const std::string& packed) {
        return test_layer{.packed = packed.substr(0, packed.size() / 2), .tar = big};
    };
    refuses(oci_archive({.layers = {cut(gzip(big))}, .tags = {"a:1"}}),
            {"layer sha256:", "gzip data: it is cut short"});
    refuses(oci_archive({.layers = {cut(zstd(big))}, .tags = {"a:1"}}),
            {"layer sha256:", "zstd data: it is cut short"});
    auto damaged = gzip(big);
    damaged[damaged.size() / 2] ^= 0x55;
    refuses(oci_archive({.layers = {{.packed = damaged, .tar = big}}, .tags = {"a:1"}}), {"gzip data:"});
}

TEST_F(image_load, archive_cut_short_is_refused) {
    const auto archive = docker_archive({{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}}});
    refuses(archive.substr(0, 700), {"cut short"});
    refuses(archive.substr(0, archive.size() - 4096), {"archive"});
    refuses("", {"neither a docker-archive", "nor an OCI layout"});
    refuses("hello", {"archive"});
}

TEST_F(image_load, error_names_layer_entry_and_reason) {
    const auto hostile = tar().symlink("x", "/etc").file("x/cron.d/p").str();
    refuses(docker_archive({{.layers = {gzip_layer(hostile)}, .tags = {"a:1"}}}),
            {"layer " + cri_helper::digest_of(hostile), "entry \"x/cron.d/p\"", "symbolic link"});
}

TEST_F(image_load, one_bad_image_keeps_all_out) {
    const auto hostile = tar().file("../x").str();
    refuses(docker_archive({{.layers = {plain_layer(layer_a)}, .tags = {"good:1"}},
                            {.layers = {plain_layer(hostile)}, .tags = {"bad:1"}}}),
            {"entry \"../x\""});
    refuses(docker_archive({{.layers = {plain_layer(layer_a)}, .tags = {"good:1", "Not/Valid!"}}}), {"Not/Valid!"});
}

TEST_F(image_load, layer_count_is_limited_to_128) {
    test_image image{.layers = {}, .tags = {"a:1"}};
    for (int i = 0; i < 128; ++i) image.layers.push_back(plain_layer(tar().file("f" + std::to_string(i)).str()));
    EXPECT_EQ(load_one(docker_archive({image})).layers.size(), 128u);
    image.layers.push_back(plain_layer(tar().file("one too many").str()));
    refuses(docker_archive({image}), {"129 layers, the limit is 128"}, code::resource);
}

TEST_F(image_load, zip_bombs_are_refused_by_ratio_and_by_size) {
    options.limits.ratio_floor = 1u << 20;
    options.limits.ratio = 100;
    reopen();
    const auto bomb = tar().file("zeros", std::string(8u << 20, '\0')).str();
    refuses(oci_archive({.layers = {gzip_layer(bomb)}, .tags = {"b:1"}}), {"compression ratio is above 100"},
            code::resource);
    refuses(oci_archive({.layers = {zstd_layer(bomb)}, .tags = {"b:1"}}), {"compression ratio is above 100"},
            code::resource);
    options.limits = {};
    options.limits.bytes = 4u << 20;
    reopen();
    refuses(oci_archive({.layers = {gzip_layer(bomb)}, .tags = {"b:1"}}),
            {"entry \"zeros\"", "more than 4194304 bytes"}, code::resource);
    refuses(gzip(docker_archive({{.layers = {plain_layer(bomb)}, .tags = {"b:1"}}})),
            {"unpacks to more than 4194304 bytes"}, code::resource);
}

TEST_F(image_load, limits_hold_for_all_layers_together) {
    options.limits.bytes = 1500;
    reopen();
    test_image image{.layers = {}, .tags = {"a:1"}};
    for (int i = 0; i < 4; ++i)
        image.layers.push_back(plain_layer(tar().file(std::to_string(i), std::string(500, 'x')).str()));
    refuses(docker_archive({image}), {"more than 1500 bytes"}, code::resource);
    options.limits = {};
    options.limits.inodes = 3;
    reopen();
    refuses(docker_archive({image}), {"more than 3 entries"}, code::resource);
}

TEST_F(image_load, manifest_and_config_sizes_are_limited) {
    test_image image{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}};
    image.config_padding = std::string(8u << 20, 'p');
    refuses(docker_archive({image}), {"the limit is 8388608"}, code::resource);
    image.config_padding.clear();
    image.tags = std::vector<std::string>(100'000, "registry.example.com/a/rather/long/name/that/is/repeated:tag");
    refuses(docker_archive({image}), {"manifest.json", "the limit is 4194304"}, code::resource);
}

TEST_F(image_load, foreign_layers_are_refused) {
    auto layer = gzip_layer(layer_a);
    layer.urls = {"https://example.com/layer"};
    refuses(oci_archive({.layers = {layer}, .tags = {"a:1"}}), {"is foreign"}, code::unsupported);
    layer.urls.clear();
    for (const auto* type : {"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
                             "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"}) {
        layer.media_type = type;
        refuses(oci_archive({.layers = {layer}, .tags = {"a:1"}}), {"is foreign"}, code::unsupported);
    }
}

TEST_F(image_load, index_of_platforms_gives_this_node_s_image_under_the_index_digest) {
    oci_layout layout;
    test_image here{.layers = {gzip_layer(layer_a)}}, there{.layers = {gzip_layer(layer_b)}};
    there.architecture = "s390x";
    auto ours = layout.manifest(here), theirs = layout.manifest(there);
#if defined(__x86_64__)
    const char* architecture = "amd64";
#elif defined(__aarch64__)
    const char* architecture = "arm64";
#endif
    ours["platform"] = object{{"os", "linux"}, {"architecture", architecture}};
    theirs["platform"] = object{{"os", "linux"}, {"architecture", "s390x"}};
    const auto index = layout.blob(base::to_text(object{{"schemaVersion", 2}, {"manifests", array{theirs, ours}}}),
                                   "application/vnd.oci.image.index.v1+json");
    layout.entry(index, "multi:1");
    const auto image = load_one(layout.str());
    EXPECT_EQ(image.id, here.id());
    EXPECT_EQ(image.repo_digests,
              std::vector<std::string>{"docker.io/library/multi@" + std::string(index.at("digest").as_string())});

    oci_layout foreign;
    auto only = foreign.manifest(there);
    only["platform"] = theirs["platform"];
    foreign.entry(
        foreign.blob(base::to_text(object{{"manifests", array{only}}}), "application/vnd.oci.image.index.v1+json"),
        "multi:2");
    refuses(foreign.str(), {"no manifest for linux/"}, code::unsupported);
}

TEST_F(image_load, indexes_that_contain_each_other_too_deep_are_refused) {
    oci_layout layout;
    auto inner = layout.manifest({.layers = {gzip_layer(layer_a)}});
    for (int i = 0; i < 6; ++i)
        inner =
            layout.blob(base::to_text(object{{"manifests", array{inner}}}), "application/vnd.oci.image.index.v1+json");
    layout.entry(inner, "deep:1");
    refuses(layout.str(), {"nested more than"});
}

TEST_F(image_load, unnamed_image_takes_the_given_name) {
    images::load_options named;
    named.default_ref = "given:v2";
    const auto docker = load_one(docker_archive({{.layers = {plain_layer(layer_a)}}}), named);
    EXPECT_EQ(docker.repo_tags, std::vector<std::string>{"docker.io/library/given:v2"});
    // A bare tag, as umoci writes it, is no name.
    const auto oci = load_one(oci_archive({.layers = {gzip_layer(layer_b)}, .tags = {"v9"}}), named);
    EXPECT_EQ(oci.repo_tags, std::vector<std::string>{"docker.io/library/given:v2"});
    EXPECT_TRUE(store->resolve(docker.id)->repo_tags.empty()); // the tag has moved
    named.default_ref = "Bad Name";
    const auto refused = load(docker_archive({{.layers = {plain_layer(layer_a)}}}), named);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail, R"({"reason":"InvalidImageName"})");
}

TEST_F(image_load, layers_that_old_docker_linked_are_followed) {
    const test_image image{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}};
    const auto config = image.id().substr(7) + ".json";
    const auto manifest = base::to_text(
        array{object{{"Config", config}, {"RepoTags", array{"a:1"}}, {"Layers", array{"two/layer.tar"}}}});
    const auto with_link = [&](const std::string& to) {
        return tar()
            .file("one/layer.tar", layer_a)
            .symlink("two/layer.tar", to)
            .file(config, image.config())
            .file("manifest.json", manifest)
            .str();
    };
    EXPECT_EQ(content(load_one(with_link("../one/layer.tar")), 0, "a"), "from a");
    ASSERT_TRUE(store->remove("a:1"));
    refuses(with_link("../../../etc/passwd"), {"\"two/layer.tar\" is not in the archive"});
    refuses(with_link("layer.tar"), {"\"two/layer.tar\" is not in the archive"}); // a loop
}

TEST_F(image_load, config_is_read_whole) {
    test_image image{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}};
    image.run = {{"User", "1000:2000"},
                 {"Env", array{"A=1", "B=x=y"}},
                 {"Entrypoint", array{"/bin/app", "-v"}},
                 {"Cmd", array{"serve"}},
                 {"WorkingDir", "/work"},
                 {"StopSignal", "SIGUSR1"},
                 {"Volumes", object{{"/data", object{}}}},
                 {"ExposedPorts", object{{"80/tcp", object{}}}},
                 {"Labels", object{{"k", "v"}}}};
    const auto loaded = load_one(docker_archive({image}));
    const images::image_config expected{.user = "1000:2000",
                                        .env = {"A=1", "B=x=y"},
                                        .entrypoint = {"/bin/app", "-v"},
                                        .cmd = {"serve"},
                                        .working_dir = "/work",
                                        .stop_signal = "SIGUSR1",
                                        .volumes = {"/data"},
                                        .exposed_ports = {"80/tcp"},
                                        .labels = {{"k", "v"}}};
    EXPECT_EQ(loaded.config, expected);
    EXPECT_EQ(loaded.created, "2023-11-14T22:13:20Z");
    EXPECT_EQ(loaded.architecture, "amd64");
    reopen();
    EXPECT_EQ(*store->resolve("a:1"), loaded);
}

TEST_F(image_load, case_6_entrypoint_of_one_empty_string_is_none) {
    test_image image{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}};
    image.run = {{"Entrypoint", array{""}}, {"Cmd", array{"nginx", "-g", "daemon off;"}}};
    const auto loaded = load_one(docker_archive({image}));
    EXPECT_TRUE(loaded.config.entrypoint.empty());
    EXPECT_EQ(loaded.config.cmd, (std::vector<std::string>{"nginx", "-g", "daemon off;"}));
}

TEST_F(image_load, case_7_image_without_command_loads) {
    test_image image{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}};
    image.run = {{"Entrypoint", nullptr}, {"Cmd", nullptr}, {"Env", nullptr}};
    const auto loaded = load_one(docker_archive({image}));
    EXPECT_EQ(loaded.config, images::image_config{});
}

TEST_F(image_load, case_1_image_without_passwd_and_with_a_numeric_user_loads) {
    test_image image{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}};
    image.run = {{"User", "1000"}};
    EXPECT_EQ(load_one(docker_archive({image})).config.user, "1000");
}

TEST_F(image_load, scratch_image_without_layers_has_one_empty_directory) {
    const auto loaded = load_one(docker_archive({{.layers = {}, .tags = {"empty:1"}}}));
    ASSERT_EQ(loaded.layers.size(), 1u);
    EXPECT_TRUE(base::list_dir(loaded.layers[0])->empty());
}

TEST_F(image_load, configs_of_wrong_shape_are_refused_by_field) {
    const auto with = [](object run) {
        return docker_archive({{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}, .run = std::move(run)}});
    };
    refuses(with({{"Env", "A=1"}}), {"image config: Env is not a list"});
    refuses(with({{"Cmd", array{1}}}), {"image config: Cmd holds something that is not a string"});
    refuses(with({{"User", 7}}), {"image config: User is not a string"});
    refuses(with({{"Env", array{base::json::string("A=\0B", 4)}}}), {"image config: Env holds a NUL byte"});
    refuses(with({{"Labels", object{{"a", 1}}}}), {"image config: Labels"});
    test_image windows{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}};
    windows.os = "windows";
    refuses(docker_archive({windows}), {"is for windows"}, code::unsupported);
    test_image short_one{.layers = {plain_layer(layer_a)}, .tags = {"a:1"}};
    short_one.diff_ids = {cri_helper::digest_of(layer_a), cri_helper::digest_of(layer_b)};
    refuses(docker_archive({short_one}), {"has 1 layers, its config names 2"});
}

TEST_F(image_load, opaque_root_drops_the_layers_below) {
    const auto opaque = tar().file(".wh..wh..opq").file("new").str();
    const auto image = load_one(docker_archive(
        {{.layers = {plain_layer(layer_a), plain_layer(opaque), plain_layer(layer_b)}, .tags = {"a:1"}}}));
    ASSERT_EQ(image.layers.size(), 2u);
    EXPECT_EQ(content(image, 0, "new"), "x");
    EXPECT_EQ(image.size, 6u + 1u + 11u);
}

TEST_F(image_load, hard_link_into_a_lower_layer_makes_the_layer_belong_to_its_stack) {
    const auto linking = tar().hardlink("link", "tool").str();
    const auto stack = [&](const std::string& tool, const std::string& tag) {
        const auto lower = tar().file("tool", tool).str();
        return docker_archive({{.layers = {gzip_layer(lower), gzip_layer(linking)}, .tags = {tag}}});
    };
    const auto one = load_one(stack("one", "one:1")), two = load_one(stack("two", "two:1"));
    EXPECT_EQ(content(one, 1, "link"), "one");
    EXPECT_EQ(content(two, 1, "link"), "two");
    EXPECT_NE(one.layers[1], two.layers[1]);
    const auto again = load_one(stack("one", "again:1"));
    EXPECT_EQ(again.layers, one.layers);
}

TEST_F(image_load, undescribed_directory_takes_after_the_lower_layer_also_when_that_was_there_before) {
    const auto base_layer = tar().dir("tmp", 01777).str();
    load_one(docker_archive({{.layers = {plain_layer(base_layer)}, .tags = {"base:1"}}}));
    const auto image = load_one(docker_archive(
        {{.layers = {plain_layer(base_layer), plain_layer(tar().file("tmp/f").str())}, .tags = {"app:1"}}}));
    struct stat st {};
    ASSERT_EQ(::stat((image.layers.at(1) + "/tmp").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 01777u);
}

TEST_F(image_load, progress_ends_at_the_size_of_each_layer) {
    images::load_options watched;
    std::map<std::string, images::load_progress> last;
    watched.on_progress = [&](const images::load_progress& p) { last[p.layer] = p; };
    const auto big = tar().file("big", std::string(6u << 20, 'b')).str();
    load_one(docker_archive({{.layers = {plain_layer(layer_a), plain_layer(big)}, .tags = {"a:1"}}}), watched);
    ASSERT_EQ(last.size(), 2u);
    EXPECT_EQ(last[cri_helper::digest_of(big)].done, big.size());
    EXPECT_EQ(last[cri_helper::digest_of(big)].total, big.size());
}

TEST_F(image_load, warnings_reach_the_caller) {
    const auto odd = tar().add({.name = "f", .pax = {{"SCHILY.xattr.trusted.overlay.opaque", "y"}}}).str();
    load_one(docker_archive({{.layers = {plain_layer(odd)}, .tags = {"a:1"}}}));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("trusted.overlay.opaque"), std::string::npos);
}

} // namespace
} // namespace gantry::test
