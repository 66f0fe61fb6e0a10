#include "plugins/source-file/last_good.hpp"

#include <unistd.h>

#include "base/files.hpp"
#include "plugins/source-file/digest.hpp"

namespace gantry::source_file {

namespace {

std::string name_of(const std::string& path) {
    fnv128 hash;
    hash.add(path);
    return hash.hex();
}

} // namespace

std::string last_good::file_of(const std::string& path) const { return directory_ + "/" + name_of(path); }

result<void> last_good::save(const std::string& path, std::string_view text) const {
    if (directory_.empty()) return {};
    if (const auto kept = load(path); kept && *kept == text) return {};
    GANTRY_CHECK(base::make_dirs(directory_));
    return base::write_file_atomic(file_of(path), text);
}

result<std::string> last_good::load(const std::string& path) const {
    if (directory_.empty()) return error{.code = code::not_found, .message = "nothing is kept"};
    return base::read_file(file_of(path));
}

void last_good::drop(const std::string& path) const {
    if (!directory_.empty()) ::unlink(file_of(path).c_str());
}

result<void> last_good::keep_only(const std::set<std::string>& paths) const {
    if (directory_.empty()) return {};
    std::set<std::string> wanted;
    for (const auto& path : paths) wanted.insert(name_of(path));
    GANTRY_TRY(const auto names, base::list_dir(directory_));
    for (const auto& name : names)
        if (!wanted.contains(name)) ::unlink((directory_ + "/" + name).c_str());
    return {};
}

} // namespace gantry::source_file
