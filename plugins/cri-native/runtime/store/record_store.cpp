#include "plugins/cri-native/runtime/store/record_store.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.hpp"

namespace gantry::cri_native::store {

namespace {

constexpr std::string_view container_suffix = ".pb";

result<void> make_dir(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("mkdir " + path, errno);
    return {};
}

template <class Record>
result<void> put_record(const std::string& path, const Record& record) {
    std::string bytes;
    if (!record.SerializeToString(&bytes))
        return error{.code = code::internal, .message = "cannot serialise the record " + path};
    return base::write_file_atomic(path, bytes);
}

template <class Record>
result<Record> get_record(const std::string& path) {
    GANTRY_TRY(const auto bytes, base::read_file(path));
    Record record;
    if (!record.ParseFromString(bytes))
        return error{.code = code::internal, .message = "the record " + path + " is damaged; it is ignored"};
    return record;
}

} // namespace

std::string new_id() {
    unsigned char bytes[16];
    std::size_t have = 0;
    while (have < sizeof bytes) {
        const ssize_t n = ::getrandom(bytes + have, sizeof bytes - have, 0);
        if (n > 0) have += static_cast<std::size_t>(n);
    }
    static constexpr char digits[] = "0123456789abcdef";
    std::string id;
    id.reserve(32);
    for (const unsigned char byte : bytes) {
        id += digits[byte >> 4];
        id += digits[byte & 15];
    }
    return id;
}

result<void> record_store::make_sandbox(const std::string& sandbox) const {
    GANTRY_CHECK(make_dir(root_));
    const std::string dir = sandbox_dir(sandbox);
    for (const auto& path : {dir, dir + "/containers", supervisor_dir(sandbox)}) GANTRY_CHECK(make_dir(path));
    // Containers of any user read these files through their mounts, whose directory need not be reachable for them.
    return make_dir(etc_dir(sandbox));
}

result<void> record_store::put(const SandboxRecord& record) const {
    return put_record(sandbox_dir(record.id()) + "/sandbox.pb", record);
}

result<void> record_store::put(const ContainerRecord& record) const {
    return put_record(sandbox_dir(record.sandbox_id()) + "/containers/" + record.id() + ".pb", record);
}

result<void> record_store::erase_container(const std::string& sandbox, const std::string& container) const {
    const std::string path = sandbox_dir(sandbox) + "/containers/" + container + ".pb";
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return sys_error("unlink " + path, errno);
    return {};
}

result<void> record_store::erase_sandbox(const std::string& sandbox) const {
    const std::string dir = sandbox_dir(sandbox);
    GANTRY_CHECK(base::remove_tree(supervisor_dir(sandbox)));
    GANTRY_CHECK(base::remove_tree(dir + "/containers"));
    GANTRY_CHECK(base::remove_tree(etc_dir(sandbox)));
    return base::remove_tree(dir);
}

result<record_store::contents> record_store::load() const {
    contents all;
    GANTRY_TRY(const auto names, base::list_dir(root_));
    for (const auto& name : names) {
        auto sandbox = get_record<SandboxRecord>(sandbox_dir(name) + "/sandbox.pb");
        if (!sandbox || sandbox->id() != name) {
            all.leftover.push_back(name);
            continue;
        }
        entry one{.sandbox = *std::move(sandbox), .containers = {}};
        const std::string dir = sandbox_dir(name) + "/containers";
        GANTRY_TRY(const auto files, base::list_dir(dir));
        for (const auto& file : files) {
            if (!file.ends_with(container_suffix)) continue; // a write that was cut off before its rename
            auto container = get_record<ContainerRecord>(dir + "/" + file);
            if (container)
                one.containers.push_back(*std::move(container));
            else
                all.warnings.push_back(container.error().message);
        }
        all.entries.push_back(std::move(one));
    }
    return all;
}

} // namespace gantry::cri_native::store
