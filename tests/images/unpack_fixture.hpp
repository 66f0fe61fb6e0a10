// Unpacks hand-made layers into a scratch directory and looks at what came out.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/helper/applier.hpp"
#include "tests/images/tar.hpp"

namespace gantry::test {

/// A directory of its own for a test, removed with it. Device nodes and trusted xattrs must be possible: root.
class scratch_dir {
public:
    /// In `parent`, by default where temporary files go.
    explicit scratch_dir(const std::string& parent = {});
    ~scratch_dir();
    scratch_dir(const scratch_dir&) = delete;
    scratch_dir& operator=(const scratch_dir&) = delete;
    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

class unpack_test : public ::testing::Test {
protected:
    explicit unpack_test(const std::string& parent = {});

    /// Into `layer`, made when missing.
    result<cri_helper::layer_summary> unpack(const std::string& tar_bytes, const std::string& layer = "layer");
    /// Expects a refusal whose message has all these parts.
    void refuses(const std::string& tar_bytes, const std::vector<std::string>& parts, code expected = code::invalid);

    std::string at(const std::string& name, const std::string& layer = "layer") const {
        return dir / (layer + "/" + name);
    }
    std::optional<struct stat> lstat(const std::string& name, const std::string& layer = "layer") const;
    bool exists(const std::string& name) const { return lstat(name).has_value(); }
    bool is_whiteout(const std::string& name) const;
    std::string content(const std::string& name, const std::string& layer = "layer") const;
    std::optional<std::string> xattr(const std::string& name, const std::string& key) const;

    scratch_dir dir;
    cri_helper::budget usage;
    cri_helper::apply_options options;
    std::vector<std::string> warnings;
};

} // namespace gantry::test
