// An image store of its own for a test, filled through the real helper.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plugins/cri-native/images/image_store.hpp"
#include "tests/images/image_archive.hpp"
#include "tests/images/tar.hpp"
#include "tests/images/unpack_fixture.hpp"

namespace gantry::test {

/// An open descriptor of a file with these bytes.
base::unique_fd file_with(const std::string& bytes);

/// The helper that was built with this test.
std::string helper_path();

class store_test : public ::testing::Test {
protected:
    store_test();

    void reopen();
    result<std::vector<images::loaded_image>> load(const std::string& archive,
                                                   const images::load_options& options = {});
    /// Loads one image and resolves it.
    images::image load_one(const std::string& archive, const images::load_options& options = {});
    /// Expects a refusal whose message has all these parts, and a store that is as before.
    void refuses(const std::string& archive, const std::vector<std::string>& parts, code expected = code::invalid);
    /// Layer directories other than the empty one.
    std::vector<std::string> layer_dirs() const;
    bool staging_is_empty() const;
    std::string content(const images::image& image, std::size_t layer, const std::string& path) const;

    scratch_dir dir;
    images::store_options options;
    std::unique_ptr<images::image_store> store;
    std::vector<std::string> warnings;
};

} // namespace gantry::test
