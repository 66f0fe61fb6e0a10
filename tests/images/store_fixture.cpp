#include "tests/images/store_fixture.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "base/files.hpp"

namespace gantry::test {

base::unique_fd file_with(const std::string& bytes) {
    base::unique_fd fd(::memfd_create("archive", MFD_CLOEXEC));
    EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(::lseek(fd.get(), 0, SEEK_SET), 0);
    return fd;
}

std::string helper_path() { return GANTRY_HELPER; }

store_test::store_test() {
    options.dir = dir / "store";
    options.helper = helper_path();
    reopen();
}

void store_test::reopen() {
    store.reset();
    auto opened = images::image_store::open(options);
    ASSERT_TRUE(opened) << opened.error().message;
    store = std::move(*opened);
}

result<std::vector<images::loaded_image>> store_test::load(const std::string& archive,
                                                           const images::load_options& how) {
    auto with_warnings = how;
    if (!with_warnings.on_warning)
        with_warnings.on_warning = [this](const std::string& text) { warnings.push_back(text); };
    const auto fd = file_with(archive);
    return store->load(fd.get(), with_warnings);
}

images::image store_test::load_one(const std::string& archive, const images::load_options& how) {
    const auto loaded = load(archive, how);
    EXPECT_TRUE(loaded) << loaded.error().message;
    if (!loaded || loaded->size() != 1) return {};
    auto image = store->resolve(loaded->front().id);
    EXPECT_TRUE(image);
    return image ? *image : images::image{};
}

void store_test::refuses(const std::string& archive, const std::vector<std::string>& parts, code expected) {
    const auto images_before = store->list();
    const auto layers_before = layer_dirs();
    const auto loaded = load(archive);
    ASSERT_FALSE(loaded) << "loaded";
    EXPECT_EQ(loaded.error().code, expected) << loaded.error().message;
    for (const auto& part : parts)
        EXPECT_NE(loaded.error().message.find(part), std::string::npos) << loaded.error().message;
    EXPECT_EQ(store->list(), images_before);
    EXPECT_EQ(layer_dirs(), layers_before);
    EXPECT_TRUE(staging_is_empty());
}

std::vector<std::string> store_test::layer_dirs() const {
    auto names = base::list_dir(options.dir + "/layers");
    EXPECT_TRUE(names);
    std::erase(*names, "0");
    return *names;
}

bool store_test::staging_is_empty() const { return base::list_dir(options.dir + "/staging")->empty(); }

std::string store_test::content(const images::image& image, std::size_t layer, const std::string& path) const {
    if (layer >= image.layers.size()) return "(no such layer)";
    auto bytes = base::read_file(image.layers[layer] + "/" + path);
    return bytes ? *bytes : "(" + bytes.error().message + ")";
}

} // namespace gantry::test
