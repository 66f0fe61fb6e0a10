#include "core/host/state_store.hpp"

#include <unistd.h>

#include "base/files.hpp"

namespace gantry::core {

namespace {

constexpr std::size_t largest_value = 64 * 1024;
// No key ends so: neither "." nor "..", nor the temporary file of another key, can be meant by one.
constexpr std::string_view suffix = "=";

result<void> check_key(std::string_view key) {
    constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (!key.empty() && key.size() <= 128 && key.find_first_not_of(allowed) == std::string_view::npos) return {};
    return error{.code = code::invalid, .message = "state key \"" + std::string(key.substr(0, 128)) + "\", allowed [A-Za-z0-9._-]{1,128}"};
}

} // namespace

result<void> state_store::put(std::string_view key, std::string_view value) {
    GANTRY_CHECK(check_key(key));
    if (value.size() > largest_value)
        return error{.code = code::invalid, .message = "state value of key \"" + std::string(key) + "\" has " + std::to_string(value.size()) +
                                                       " bytes, allowed 65536: keep it in a file of state_dir"};
    const auto path = dir_ + "/" + std::string(key) + std::string(suffix);
    const std::lock_guard lock(mutex_); // two writers of one key share a temporary file
    if (value.empty()) {
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) return sys_error("remove " + path, errno);
        return {};
    }
    GANTRY_CHECK(base::make_dirs(dir_, 0700));
    return base::write_file_atomic(path, value);
}

result<std::string> state_store::get(std::string_view key) const {
    GANTRY_CHECK(check_key(key));
    return base::read_file(dir_ + "/" + std::string(key) + std::string(suffix), largest_value);
}

std::vector<std::string> state_store::keys() const {
    std::vector<std::string> keys;
    const auto names = base::list_dir(dir_);
    if (!names) return keys;
    for (const auto& name : *names)
        if (name.ends_with(suffix)) keys.push_back(name.substr(0, name.size() - suffix.size()));
    return keys;
}

} // namespace gantry::core
