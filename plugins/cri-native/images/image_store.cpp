#include "plugins/cri-native/images/image_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/files.hpp"
#include "base/unique_fd.hpp"
#include "plugins/cri-native/images/loader.hpp"
#include "plugins/cri-native/images/reference.hpp"

namespace gantry::images {

namespace {

constexpr const char* empty_layer = "0"; // overlay wants at least one lower directory
constexpr std::size_t short_id = 12;
constexpr auto orphan_patience = std::chrono::seconds(5);

error not_found(std::string_view what) {
    return {.code = code::not_found, .message = "no image \"" + std::string(what) + "\" in the store"};
}

bool is_hex_text(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }

bool in_user_namespace() {
    const auto map = base::read_file("/proc/self/uid_map");
    return map && map->find("4294967295") == std::string::npos;
}

template <class T>
bool erase_value(std::vector<T>& list, const T& value) {
    return std::erase(list, value) > 0;
}

void add_sorted(std::vector<std::string>& list, const std::string& value) {
    const auto at = std::lower_bound(list.begin(), list.end(), value);
    if (at == list.end() || *at != value) list.insert(at, value);
}

std::string repository_of(std::string_view canonical) {
    const auto at = canonical.find('@');
    return std::string(canonical.substr(0, at != std::string_view::npos ? at : canonical.rfind(':')));
}

/// Layers are counted by looking: one that no image names has no record.
void drop_unused(index& records) {
    std::set<std::string> used;
    for (const auto& [id, image] : records.images) used.insert(image.layers.begin(), image.layers.end());
    std::erase_if(records.layers, [&](const auto& item) { return !used.contains(item.first); });
}

std::optional<std::string> same_layer(const index& records, const layer_record& layer) {
    for (const auto& [name, other] : records.layers)
        if (other.diff_id == layer.diff_id && other.chain == layer.chain) return name;
    return std::nullopt;
}

result<base::unique_fd> open_directory(const std::string& path) {
    base::unique_fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return sys_error("open " + path, errno);
    return fd;
}

/// A helper that outlived a killed store ends at once, but not at the same time: its load is locked until then.
result<void> wait_for_orphan(const std::string& staging) {
    const std::string path = staging + "/request";
    base::unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return errno == ENOENT || errno == ENOTDIR ? result<void>{} : sys_error("open " + path, errno);
    for (const auto deadline = std::chrono::steady_clock::now() + orphan_patience;;) {
        if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return {};
        if (errno != EWOULDBLOCK) return sys_error("lock " + path, errno);
        if (std::chrono::steady_clock::now() > deadline)
            return error{.code = code::busy, .message = path + " is still locked by the helper of an earlier load"};
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

result<void> check_reference(std::string_view text) {
    GANTRY_TRY(const auto ref, parse_reference(text));
    static_cast<void>(ref);
    return {};
}

} // namespace

struct image_store::state {
    store_options options;
    base::unique_fd lock;
    bool user_xattr = false;

    std::mutex change;        // held over I/O: one commit or removal at a time; taken before `mutex`
    mutable std::mutex mutex; // guards what follows, never held over I/O that can be slow: readers are starting pods
    index records;            // changed with both held, so either is enough to read it
    std::map<std::string, std::set<std::string>> pins; // image id -> users
    std::set<std::string> leaving;                     // images whose removal is being written: no new pins
    std::set<std::string> garbage;                     // layer directories that no record names
    std::uint64_t next_staging = 1;
    int loads = 0; // under way: garbage stays, they may be using it

    std::string layer_dir(const std::string& name) const { return options.dir + "/layers/" + name; }
    std::string staging_dir(const std::string& name) const { return options.dir + "/staging/" + name; }
    std::string index_path() const { return options.dir + "/index.json"; }

    int step = 0;
    void at_step() {
        if (options.on_step) options.on_step(++step);
    }

    result<void> recover();
    result<std::string> make_staging();
    cri_helper::load_request request_for(const load_options& load) const;
    result<std::vector<loaded_image>> commit(const std::string& staging, const index& snapshot, unpacked content);
    result<void> write(index next);
    void sweep();
    image describe(const image_record& record) const;
    const image_record* find(std::string_view text) const;
};

result<void> image_store::state::recover() {
    GANTRY_CHECK(base::make_dirs(options.dir, 0700));
    const std::string lock_path = options.dir + "/lock";
    lock = base::unique_fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock) return sys_error("open " + lock_path, errno);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? error{.code = code::busy,
                                            .message = "the image store " + options.dir + " is open in another process"}
                                    : sys_error("lock " + lock_path, errno);
    GANTRY_CHECK(base::make_dirs(options.dir + "/staging", 0700));
    GANTRY_CHECK(base::make_dirs(layer_dir(empty_layer), 0755));

    if (const auto text = base::read_file(index_path(), 1u << 30); text) {
        GANTRY_TRY(records, parse_index(*text));
    } else if (text.error().sys_errno != ENOENT) {
        return text.error();
    }
    GANTRY_TRY(const auto names, base::list_dir(options.dir + "/layers"));
    const std::set<std::string> present(names.begin(), names.end());
    std::erase_if(records.images, [&](const auto& item) { // somebody deleted a layer: the image must be fetched again
        const auto& layers = item.second.layers;
        return !std::all_of(layers.begin(), layers.end(), [&](const auto& name) { return present.contains(name); });
    });
    drop_unused(records);
    for (const auto& name : present)
        if (name != empty_layer && !records.layers.contains(name)) garbage.insert(name);
    GANTRY_TRY(const auto stagings, base::list_dir(options.dir + "/staging"));
    for (const auto& name : stagings) {
        GANTRY_CHECK(wait_for_orphan(staging_dir(name)));
        GANTRY_CHECK(base::remove_tree(staging_dir(name)));
    }
    sweep();
    return {};
}

result<std::string> image_store::state::make_staging() {
    const std::scoped_lock guard(mutex);
    const auto path = staging_dir(std::to_string(next_staging++));
    if (::mkdir(path.c_str(), 0700) != 0 || ::mkdir((path + "/work").c_str(), 0700) != 0)
        return sys_error("mkdir " + path, errno);
    return path;
}

/// Moves layers that nobody needs out of sight, then deletes them.
void image_store::state::sweep() {
    std::vector<std::string> doomed;
    {
        const std::scoped_lock guard(mutex);
        if (loads > 0) return;
        for (const auto& name : garbage) {
            at_step();
            const auto to = staging_dir("gone-" + name);
            if (::rename(layer_dir(name).c_str(), to.c_str()) == 0) doomed.push_back(to);
        }
        garbage.clear();
    }
    if (!doomed.empty()) at_step();
    // A failure leaves them in staging/, which is swept at the next open.
    for (const auto& path : doomed) static_cast<void>(base::remove_tree(path));
}

/// The commit point. Layers that the new records do not name become garbage.
result<void> image_store::state::write(index next) {
    drop_unused(next);
    at_step();
    GANTRY_CHECK(base::write_file_atomic(index_path(), to_text(next), 0600, true));
    at_step();
    const std::scoped_lock guard(mutex);
    for (const auto& [name, layer] : records.layers)
        if (!next.layers.contains(name)) garbage.insert(name);
    for (const auto& [name, layer] : next.layers) garbage.erase(name);
    records = std::move(next);
    return {};
}

cri_helper::load_request image_store::state::request_for(const load_options& load) const {
    const auto& limits = options.limits;
    cri_helper::load_request request{.default_ref = load.default_ref,
                                     .user_xattr = user_xattr,
                                     .device_nodes = options.device_nodes,
                                     .bytes = limits.bytes,
                                     .inodes = limits.inodes,
                                     .ratio = limits.ratio,
                                     .ratio_floor = limits.ratio_floor,
                                     .layers = limits.layers,
                                     .manifest_bytes = limits.manifest_bytes,
                                     .config_bytes = limits.config_bytes,
                                     .known = {}};
    struct statvfs fs {};
    if (::statvfs(options.dir.c_str(), &fs) == 0)
        request.bytes = std::min<std::uint64_t>(request.bytes, fs.f_bavail * fs.f_frsize);
    for (const auto& [dir, layer] : records.layers)
        request.known.push_back({dir, layer.diff_id, layer.chain, layer.opaque_root});
    return request;
}

result<std::vector<loaded_image>> image_store::state::commit(const std::string& staging, const index& snapshot,
                                                             unpacked content) {
    index next = records;
    std::map<std::string, std::string> names;         // the helper's directory -> ours
    for (const auto& [name, layer] : snapshot.layers) // one that was removed since may be there again by another name
        names["lower/" + name] = next.layers.contains(name) ? name : same_layer(next, layer).value_or(name);
    for (auto& layer : content.layers) {
        if (auto same = same_layer(next, layer.record)) { // another load was faster
            names[layer.dir] = std::move(*same);
            continue;
        }
        const auto name = std::to_string(next.next_layer++);
        at_step();
        const auto from = staging + "/work/" + layer.dir;
        if (::rename(from.c_str(), layer_dir(name).c_str()) != 0) return sys_error("rename " + from, errno);
        const std::scoped_lock guard(mutex);
        garbage.insert(name); // until the records name it
        records.next_layer = next.next_layer;
        names[layer.dir] = name;
        next.layers[name] = std::move(layer.record);
    }

    std::vector<loaded_image> loaded;
    for (auto& image : content.images) {
        auto& record = next.images[image.info.id];
        record.info = std::move(image.info);
        record.layers.clear();
        for (const auto& dir : image.layers) {
            const auto name = names.find(dir);
            if (name == names.end()) return error{.message = "the image helper named an unknown layer " + dir};
            record.layers.push_back(name->second);
            // The record of a layer that the load found may have gone with a removal since, its directory has not.
            if (const auto known = snapshot.layers.find(name->second); known != snapshot.layers.end())
                next.layers.insert(*known);
        }
        loaded.push_back({.id = record.info.id});
        for (const auto& text : image.refs) {
            GANTRY_TRY(const auto ref, parse_reference(text));
            if (!image.manifest_digest.empty()) add_sorted(record.names, ref.name() + "@" + image.manifest_digest);
            if (ref.tag.empty()) continue;
            const auto tag = ref.name() + ":" + ref.tag;
            for (auto& [id, other] : next.images) erase_value(other.tags, tag);
            add_sorted(record.tags, tag);
            add_sorted(loaded.back().refs, tag);
        }
    }
    at_step();
    const base::unique_fd fs(::open(options.dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fs || ::syncfs(fs.get()) != 0) return sys_error("syncfs " + options.dir, errno);
    GANTRY_CHECK(write(std::move(next)));
    for (auto& image : loaded) image.size = describe(records.images.at(image.id)).size;
    return loaded;
}

image image_store::state::describe(const image_record& record) const {
    image out = record.info;
    out.repo_tags = record.tags;
    out.repo_digests = record.names;
    for (const auto& name : record.layers) {
        const auto layer = records.layers.find(name);
        if (layer == records.layers.end()) continue;
        out.size += layer->second.bytes;
        if (layer->second.opaque_root) out.layers.clear();
        out.layers.push_back(layer_dir(name));
    }
    if (out.layers.empty()) out.layers.push_back(layer_dir(empty_layer));
    return out;
}

const image_record* image_store::state::find(std::string_view text) const {
    const auto by_id = [&](const std::string& id) -> const image_record* {
        const auto it = records.images.find(id);
        return it == records.images.end() ? nullptr : &it->second;
    };
    if (is_digest(text)) return by_id(std::string(text));
    if (text.size() == 64 && is_hex_text(text)) return by_id("sha256:" + std::string(text));
    if (const auto ref = parse_reference(text); ref) {
        const auto name = ref->canonical();
        for (const auto& [id, record] : records.images) {
            const auto& list = ref->digest.empty() ? record.tags : record.names;
            if (std::binary_search(list.begin(), list.end(), name)) return &record;
        }
    }
    if (text.size() < short_id || text.size() > 64 || !is_hex_text(text)) return nullptr;
    const auto prefix = "sha256:" + std::string(text);
    const auto first = records.images.lower_bound(prefix);
    if (first == records.images.end() || !first->first.starts_with(prefix)) return nullptr;
    const auto second = std::next(first);
    return second != records.images.end() && second->first.starts_with(prefix) ? nullptr : &first->second;
}

image_store::image_store(std::unique_ptr<state> s) : state_(std::move(s)) {}
image_store::~image_store() = default;

result<std::unique_ptr<image_store>> image_store::open(store_options options) {
    auto fresh = std::make_unique<state>();
    fresh->options = std::move(options);
    fresh->user_xattr = in_user_namespace();
    GANTRY_CHECK(fresh->recover());
    return std::unique_ptr<image_store>(new image_store(std::move(fresh)));
}

result<std::vector<loaded_image>> image_store::load(int archive_fd, const load_options& load) {
    if (!load.default_ref.empty()) GANTRY_CHECK(check_reference(load.default_ref));
    GANTRY_TRY(const auto staging, state_->make_staging());
    std::unique_lock guard(state_->mutex);
    const index snapshot = state_->records;
    const auto request = cri_helper::to_text(state_->request_for(load));
    ++state_->loads;
    guard.unlock();

    const auto work = [&]() -> result<std::vector<loaded_image>> {
        GANTRY_CHECK(base::write_file_atomic(staging + "/request", request, 0600));
        base::unique_fd request_file(::open((staging + "/request").c_str(), O_RDONLY | O_CLOEXEC));
        if (!request_file || ::flock(request_file.get(), LOCK_EX | LOCK_NB) != 0)
            return sys_error("lock " + staging, errno);
        GANTRY_TRY(const auto work_dir, open_directory(staging + "/work"));
        GANTRY_TRY(const auto layers_dir, open_directory(state_->options.dir + "/layers"));
        GANTRY_TRY(auto content, run_helper(state_->options, load,
                                            {.request = request_file.get(),
                                             .archive = archive_fd,
                                             .work = work_dir.get(),
                                             .layers = layers_dir.get()}));
        const std::scoped_lock change(state_->change);
        return state_->commit(staging, snapshot, std::move(content));
    };
    auto loaded = work();
    static_cast<void>(base::remove_tree(staging)); // what stays is swept at the next open
    guard.lock();
    --state_->loads;
    guard.unlock();
    state_->sweep();
    return loaded;
}

std::vector<image> image_store::list() const {
    const std::scoped_lock guard(state_->mutex);
    std::vector<image> images;
    for (const auto& [id, record] : state_->records.images) images.push_back(state_->describe(record));
    return images;
}

result<image> image_store::resolve(std::string_view text) const {
    const std::scoped_lock guard(state_->mutex);
    if (const auto* record = state_->find(text)) return state_->describe(*record);
    if (!is_digest(text) && !is_hex_text(text)) GANTRY_CHECK(check_reference(text));
    return not_found(text);
}

result<void> image_store::remove(std::string_view text) {
    std::unique_lock change(state_->change);
    std::unique_lock guard(state_->mutex);
    const auto* found = state_->find(text);
    if (found == nullptr) return {};
    const std::string id = found->info.id;
    index next = state_->records;
    auto& record = next.images.at(id);

    const auto ref = parse_reference(text);
    const bool tagged = ref && erase_value(record.tags, ref->canonical());
    const bool named = ref && erase_value(record.names, ref->canonical());
    if (tagged) { // a repository without a tag keeps no digest either
        const auto repository = ref->name();
        const bool more = std::any_of(record.tags.begin(), record.tags.end(),
                                      [&](const auto& tag) { return repository_of(tag) == repository; });
        if (!more) std::erase_if(record.names, [&](const auto& name) { return repository_of(name) == repository; });
    }
    const bool deletes = (!tagged && !named) || (record.tags.empty() && record.names.empty());
    if (deletes) {
        if (const auto users = state_->pins.find(id); users != state_->pins.end()) {
            std::string names;
            for (const auto& user : users->second) names += (names.empty() ? "" : ", ") + user;
            return error{.code = code::busy,
                         .message = "image \"" + std::string(text) + "\" is used by container " + names};
        }
        next.images.erase(id);
        state_->leaving.insert(id);
    }
    guard.unlock();
    auto written = state_->write(std::move(next));
    guard.lock();
    state_->leaving.erase(id);
    guard.unlock();
    change.unlock();
    state_->sweep();
    return written;
}

result<void> image_store::pin(const std::string& image_id, const std::string& user) {
    const std::scoped_lock guard(state_->mutex);
    if (!state_->records.images.contains(image_id) || state_->leaving.contains(image_id)) return not_found(image_id);
    state_->pins[image_id].insert(user);
    return {};
}

void image_store::unpin(const std::string& image_id, const std::string& user) {
    const std::scoped_lock guard(state_->mutex);
    const auto users = state_->pins.find(image_id);
    if (users == state_->pins.end()) return;
    users->second.erase(user);
    if (users->second.empty()) state_->pins.erase(users);
}

fs_usage image_store::fs_info() const {
    const std::scoped_lock guard(state_->mutex);
    fs_usage usage{.mountpoint = state_->options.dir};
    for (const auto& [name, layer] : state_->records.layers) {
        usage.used_bytes += layer.bytes;
        usage.inodes_used += layer.inodes;
    }
    return usage;
}

bool image_store::user_xattr() const noexcept { return state_->user_xattr; }

} // namespace gantry::images
