// Tar archives written by hand, field by field, so that a test can say exactly what a hostile one says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace gantry::test {

struct tar_header {
    std::string name;
    char type = '0';
    unsigned mode = 0644;
    std::uint64_t uid = 0;
    std::uint64_t gid = 0;
    std::int64_t mtime = 1'600'000'000;
    std::string link{};
    unsigned major = 0;
    unsigned minor = 0;
    std::map<std::string, std::string> pax{}; ///< records of an extended header before it
    bool base256 = false;                     ///< GNU's binary numbers for uid, gid, size and mtime
    std::int64_t size = -1;                   ///< instead of the data's
};

class tar {
public:
    tar& add(const tar_header& header, std::string_view data = {});
    tar& file(const std::string& name, std::string_view data = "x") { return add({.name = name}, data); }
    tar& dir(const std::string& name, unsigned mode = 0755) { return add({.name = name, .type = '5', .mode = mode}); }
    tar& symlink(const std::string& name, const std::string& to) {
        return add({.name = name, .type = '2', .mode = 0777, .link = to});
    }
    tar& hardlink(const std::string& name, const std::string& to) {
        return add({.name = name, .type = '1', .link = to});
    }
    /// A name of any length as GNU tar writes it.
    tar& gnu_long_name(const std::string& name, std::string_view data);
    /// An old GNU sparse file of real_size bytes with one run of data.
    tar& gnu_sparse(const std::string& name, std::uint64_t real_size, std::uint64_t offset, std::string_view data);
    tar& raw(std::string_view bytes);

    /// With the two zero blocks at the end.
    std::string str() const { return bytes_ + std::string(1024, '\0'); }
    /// Without them.
    const std::string& unfinished() const { return bytes_; }

private:
    std::string bytes_;
};

} // namespace gantry::test
