#include "plugins/cri-native/supervisor/target.hpp"

#include <sys/stat.h>

#include "plugins/cri-native/supervisor/sys.hpp"

namespace gantry::cri_native::supervisor {

namespace wire = launch::wire;

namespace {

constexpr int max_symlinks = 40;
constexpr int max_climbs = 256;
constexpr int max_races = 128;

// Walks one component at a time with O_PATH|O_NOFOLLOW and resolves symlinks itself. ".." never reaches the kernel: it
// drops a component of the path walked so far, which is then walked again from the root.
class walker {
public:
    walker(int root, target_options options) noexcept : root_(root), options_(options) {}

    int walk(text path) noexcept {
        rest_.add(path);
        if (rest_.truncated() ? !no(ENAMETOOLONG) : !restart()) return -1;
        for (;;) {
            if (!next_component()) return at_.release();
            if (name_ == text_of("..")) {
                if (!up()) return -1;
                continue;
            }
            if (name_ == text_of(".")) continue;
            if (!down()) return -1;
        }
    }

private:
    using component = line<256>;

    struct text_of {
        explicit text_of(const char* s) noexcept : value(s) {}
        const char* value;
        friend bool operator==(const component& a, text_of b) noexcept { return text(a) == b.value; }
    };

    static bool no(int err) noexcept {
        errno = err;
        return false;
    }

    bool restart() noexcept {
        at_.reset(sys::retry([&] { return ::openat(root_, ".", O_PATH | O_DIRECTORY | O_CLOEXEC); }));
        done_.cut(0);
        return static_cast<bool>(at_);
    }

    bool next_component() noexcept {
        const char* p = rest_.c_str() + offset_;
        while (*p == '/') ++p;
        const char* end = p;
        while (*end != '\0' && *end != '/') ++end;
        name_.cut(0);
        name_.add(p, static_cast<std::size_t>(end - p));
        while (*end == '/') ++end;
        last_ = *end == '\0';
        offset_ = static_cast<std::size_t>(end - rest_.c_str());
        return name_.size() != 0;
    }

    bool up() noexcept {
        path_line kept;
        kept.add(done_);
        std::size_t size = kept.size();
        while (size > 0 && kept.c_str()[size - 1] != '/') --size;
        kept.cut(size > 0 ? size - 1 : 0);
        path_line again;
        again.add(kept).add("/").add(rest_.c_str() + offset_);
        if (again.truncated()) return no(ENAMETOOLONG);
        rest_ = again;
        offset_ = 0;
        return ++climbs_ > max_climbs ? no(ELOOP) : restart();
    }

    bool down() noexcept {
        if (name_.truncated()) return no(ENAMETOOLONG);
        for (int races = 0; races < max_races; ++races) {
            sys::fd next(::openat(at_.get(), name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
            if (!next) {
                if (errno != ENOENT || !create()) return false;
                continue; // opened again, whoever made it
            }
            struct stat st {};
            if (::fstat(next.get(), &st) != 0) return false;
            if (S_ISLNK(st.st_mode)) return follow(next.get());
            if (!last_ && !S_ISDIR(st.st_mode)) return no(ENOTDIR);
            at_ = static_cast<sys::fd&&>(next);
            done_.add("/").add(name_);
            return true;
        }
        return no(EAGAIN);
    }

    bool create() noexcept {
        if (options_.if_missing == missing::fail) return false;
        if (!last_ || options_.if_missing == missing::make_directory)
            return ::mkdirat(at_.get(), name_.c_str(), 0755) == 0 || errno == EEXIST;
        const sys::fd made(
            ::openat(at_.get(), name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
        return made || errno == EEXIST;
    }

    bool follow(int link) noexcept {
        if (options_.no_symlink || ++jumps_ > max_symlinks) return no(ELOOP);
        char target[4096];
        const ssize_t n = ::readlinkat(link, "", target, sizeof target - 1);
        if (n < 0) return false;
        path_line again;
        const bool absolute = n > 0 && target[0] == '/';
        if (!absolute) again.add(done_).add("/");
        again.add(target, static_cast<std::size_t>(n)).add("/").add(rest_.c_str() + offset_);
        if (again.truncated()) return no(ENAMETOOLONG);
        rest_ = again;
        offset_ = 0;
        return restart();
    }

    int root_;
    target_options options_;
    sys::fd at_;
    path_line done_;
    path_line rest_;
    component name_;
    std::size_t offset_ = 0;
    bool last_ = false;
    int jumps_ = 0;
    int climbs_ = 0;
};

} // namespace

int open_target(int root, text path, target_options options) noexcept {
    if (sys::has(wire::feature_openat2)) {
        const std::uint64_t resolve =
            RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | (options.no_symlink ? RESOLVE_NO_SYMLINKS : 0);
        for (int races = 0; races < max_races; ++races) {
            const int found = sys::openat2(root, path.empty() ? "/" : path.data, O_PATH | O_CLOEXEC, resolve);
            if (found >= 0) return found;
            if (errno != EAGAIN) break; // a rename raced with "..": try again
        }
        if (errno == ELOOP || (errno == ENOENT && options.if_missing == missing::fail)) return -1;
    }
    walker walk(root, options);
    return walk.walk(path);
}

int open_parent(int root, text path, char* name, std::size_t name_size) noexcept {
    std::size_t end = path.size;
    while (end > 0 && path.data[end - 1] == '/') --end;
    std::size_t begin = end;
    while (begin > 0 && path.data[begin - 1] != '/') --begin;
    const std::size_t n = end - begin;
    if (n == 0 || n >= name_size || (n <= 2 && path.data[begin] == '.' && path.data[end - 1] == '.')) {
        errno = EINVAL;
        return -1;
    }
    std::memcpy(name, path.data + begin, n);
    name[n] = '\0';
    path_line parent;
    parent.add("/").add(path.data, begin);
    return open_target(root, parent, {.if_missing = missing::make_directory});
}

} // namespace gantry::cri_native::supervisor
