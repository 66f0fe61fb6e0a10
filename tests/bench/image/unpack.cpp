// How fast images are unpacked: about 200 MB of this machine's own files as one layer and as four, gzip and zstd, into
// a fresh store on disk (the sync before the commit included) and in memory. MB/CPU s: megabytes for a second of
// processor time of all processes, which a busy machine changes little; beside it the same of tar with its
// decompressor. usage: unpack [--json]
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/unique_fd.hpp"
#include "plugins/cri-native/images/image_store.hpp"
#include "tests/images/image_archive.hpp"
#include "tests/images/store_fixture.hpp"
#include "tests/images/tar.hpp"

namespace {

namespace fs = std::filesystem;
using namespace gantry;

constexpr std::size_t wanted_bytes = 200u << 20;
constexpr int rounds = 3;

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "unpack: %s\n", why.c_str());
    std::exit(1);
}

/// Layers of the size of real ones with the content of real ones: every third file of /usr, a mix of all of it.
std::vector<std::string> layers_of_this_machine(std::size_t count) {
    std::vector<std::string> files;
    for (const auto* top : {"/usr/bin", "/usr/lib", "/usr/share"})
        for (const auto& entry : fs::recursive_directory_iterator(top, fs::directory_options::skip_permission_denied))
            if (entry.is_regular_file() && !entry.is_symlink() && entry.path().string().size() < 100)
                files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<std::string> layers;
    test::tar layer;
    std::size_t total = 0;
    for (std::size_t i = 0; i < files.size() && total < wanted_bytes; i += 3) {
        const auto bytes = base::read_file(files[i], 16u << 20);
        if (!bytes) continue;
        layer.add({.name = files[i].substr(1), .mode = 0755}, *bytes);
        total += bytes->size();
        if (layer.unfinished().size() * count < wanted_bytes) continue;
        layers.push_back(layer.str());
        layer = {};
    }
    if (!layer.unfinished().empty()) layers.push_back(layer.str());
    return layers;
}

struct archive {
    std::string path;
    double unpacked_mb = 0; ///< the layers' tars
    double packed_mb = 0;
};

archive make_archive(const std::string& path, const std::vector<std::string>& tars,
                     test::test_layer (*pack)(const std::string&)) {
    archive made{.path = path};
    test::test_image image{.layers = {}, .tags = {"bench:1"}};
    for (const auto& tar : tars) {
        image.layers.push_back(pack(tar));
        made.unpacked_mb += static_cast<double>(tar.size()) / 1e6;
        made.packed_mb += static_cast<double>(image.layers.back().packed.size()) / 1e6;
    }
    if (!base::write_file_atomic(path, test::oci_archive(image))) give_up("cannot write " + path);
    return made;
}

struct cost {
    double seconds = 0;
    double cpu = 0;
};

/// Of the children that have ended.
double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <class F>
cost measure(F&& work) {
    const auto cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return {took.count(), cpu_seconds() - cpu};
}

cost load_once(const std::string& dir, const archive& from) {
    auto store = images::image_store::open(
        {.dir = dir, .helper = test::helper_path(), .spawn = {}, .limits = {}, .on_step = {}});
    if (!store) give_up(store.error().message);
    const base::unique_fd fd(::open(from.path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto took = measure([&] {
        if (const auto loaded = (*store)->load(fd.get()); !loaded) give_up(loaded.error().message);
    });
    store->reset();
    static_cast<void>(base::remove_tree(dir));
    return took;
}

cost tar_once(const std::string& dir, const std::string& layer, const char* flag) {
    if (!base::make_dirs(dir)) give_up("cannot make " + dir);
    const auto command = "tar -C '" + dir + "' " + flag + " -xf '" + layer + "'";
    const auto took = measure([&] {
        if (std::system(command.c_str()) != 0) give_up("failed: " + command);
    });
    static_cast<void>(base::remove_tree(dir));
    return took;
}

template <class F>
cost best(F&& once) {
    cost least = once();
    for (int i = 1; i < rounds; ++i) {
        const cost next = once();
        least = {std::min(least.seconds, next.seconds), std::min(least.cpu, next.cpu)};
    }
    return least;
}

} // namespace

int main(int argc, char** argv) {
    const bool as_json = argc == 2 && std::string_view(argv[1]) == "--json";
    if (argc > 1 && !as_json) give_up("usage: unpack [--json]");
    const std::string disk_dir = std::string(GANTRY_SOURCE_DIR) + "/build/bench-unpack." + std::to_string(::getpid());
    const std::string memory_dir = "/dev/shm/gantry-bench-unpack." + std::to_string(::getpid());
    for (const auto& dir : {disk_dir, memory_dir})
        if (!base::make_dirs(dir)) give_up("cannot make " + dir);

    struct format {
        const char* name;
        test::test_layer (*pack)(const std::string&);
        const char* tar_flag;
    };
    constexpr format formats[] = {{"gzip", test::gzip_layer, "--gzip"}, {"zstd", test::zstd_layer, "--zstd"}};
    base::json::array rows;
    if (!as_json)
        std::printf("%-16s %8s %10s %12s %14s %12s %14s\n", "", "MB", "packed MB", "disk MB/s", "memory MB/s",
                    "MB/CPU s", "tar MB/CPU s");
    for (const auto& kind : formats) {
        for (const std::size_t count : {1u, 4u}) {
            const auto tars = layers_of_this_machine(count);
            const auto from = make_archive(disk_dir + "/image.tar", tars, kind.pack);
            const auto disk = load_once(disk_dir + "/store", from); // once: removing it takes longer still
            const auto memory = best([&] { return load_once(memory_dir + "/store", from); });
            if (!base::write_file_atomic(disk_dir + "/layer", kind.pack(tars[0]).packed))
                give_up("cannot write the layer");
            const auto tar = best([&] { return tar_once(memory_dir + "/tar", disk_dir + "/layer", kind.tar_flag); });

            const auto label =
                std::string(kind.name) + ", " + std::to_string(count) + (count == 1 ? " layer" : " layers");
            const double mb = from.unpacked_mb, tar_mb = static_cast<double>(tars[0].size()) / 1e6;
            rows.push_back(base::json::object{{"name", label},
                                              {"megabytes", mb},
                                              {"packedMegabytes", from.packed_mb},
                                              {"diskMBps", mb / disk.seconds},
                                              {"memoryMBps", mb / memory.seconds},
                                              {"MBperCpuSecond", mb / memory.cpu},
                                              {"tarMBperCpuSecond", tar_mb / tar.cpu}});
            if (as_json) continue;
            std::printf("%-16s %8.0f %10.0f %12.0f %14.0f %12.0f %14.0f\n", label.c_str(), mb, from.packed_mb,
                        mb / disk.seconds, mb / memory.seconds, mb / memory.cpu, tar_mb / tar.cpu);
            std::fflush(stdout);
        }
    }
    if (as_json) std::printf("%s\n", base::to_pretty(rows).c_str());
    for (const auto& dir : {disk_dir, memory_dir}) static_cast<void>(base::remove_tree(dir));
    return 0;
}
