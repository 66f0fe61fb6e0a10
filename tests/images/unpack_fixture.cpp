#include "tests/images/unpack_fixture.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/files.hpp"
#include "base/unique_fd.hpp"
#include "plugins/cri-native/helper/untar.hpp"

namespace gantry::test {

scratch_dir::scratch_dir(const std::string& parent) {
    std::string pattern = (parent.empty() ? ::testing::TempDir() : parent) + "/gantry-images-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << pattern;
    path_ = pattern;
}

scratch_dir::~scratch_dir() {
    const auto removed = base::remove_tree(path_);
    EXPECT_TRUE(removed) << removed.error().message;
}

unpack_test::unpack_test(const std::string& parent) : dir(parent) {
    EXPECT_TRUE(cri_helper::prepare_untar());
    usage.byte_limit = 1u << 30;
    usage.inode_limit = 100'000;
    options.warn = [this](const std::string& text) { warnings.push_back(text); };
}

result<cri_helper::layer_summary> unpack_test::unpack(const std::string& tar_bytes, const std::string& layer) {
    GANTRY_CHECK(base::make_dirs(dir / layer, 0755));
    const base::unique_fd root(::open((dir / layer).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    cri_helper::applier applier(root.get(), usage, options);
    std::string_view rest = tar_bytes;
    return cri_helper::untar(
        [&]() -> result<std::string_view> { // small pieces: nothing may rely on getting a header at once
            const auto piece = rest.substr(0, 700);
            rest.remove_prefix(piece.size());
            return piece;
        },
        applier);
}

void unpack_test::refuses(const std::string& tar_bytes, const std::vector<std::string>& parts, code expected) {
    const auto done = unpack(tar_bytes);
    ASSERT_FALSE(done) << "unpacked";
    EXPECT_EQ(done.error().code, expected) << done.error().message;
    for (const auto& part : parts)
        EXPECT_NE(done.error().message.find(part), std::string::npos) << done.error().message;
}

std::optional<struct stat> unpack_test::lstat(const std::string& name, const std::string& layer) const {
    struct stat st {};
    if (::lstat(at(name, layer).c_str(), &st) != 0) return std::nullopt;
    return st;
}

bool unpack_test::is_whiteout(const std::string& name) const {
    const auto st = lstat(name);
    return st && S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

std::string unpack_test::content(const std::string& name, const std::string& layer) const {
    auto bytes = base::read_file(at(name, layer));
    return bytes ? *bytes : "(" + bytes.error().message + ")";
}

std::optional<std::string> unpack_test::xattr(const std::string& name, const std::string& key) const {
    char value[256];
    const ssize_t n = ::lgetxattr(at(name).c_str(), key.c_str(), value, sizeof value);
    if (n < 0) return std::nullopt;
    return std::string(value, static_cast<std::size_t>(n));
}

} // namespace gantry::test
