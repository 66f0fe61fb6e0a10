// kill -9 of the store, of its helper and of the helper's workers: the old or the new state, and nothing left over.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include <linux/capability.h>

#include "base/files.hpp"
#include "plugins/cri-native/helper/digest.hpp"
#include "tests/images/store_fixture.hpp"

namespace gantry::test {
namespace {

using base::json::array;
using base::json::object;
using namespace std::chrono_literals;

/// A docker-archive with one layer of 4 GiB of zeros, in a file that takes no memory: loading it takes a while.
base::unique_fd slow_archive() {
    constexpr std::uint64_t data = 4ull << 30;
    test_image image{.layers = {}, .tags = {"slow:1"}};
    image.diff_ids = {cri_helper::digest_of("not reached")};
    const auto config = image.id().substr(7) + ".json";
    const auto manifest =
        array{object{{"Config", config}, {"RepoTags", array{"slow:1"}}, {"Layers", array{"layer.tar"}}}};
    const auto inner =
        tar().add({.name = "zeros", .base256 = true, .size = static_cast<std::int64_t>(data)}).unfinished();
    const auto size = static_cast<std::int64_t>(inner.size() + data + 1024);
    const auto outer = tar()
                           .file(config, image.config())
                           .file("manifest.json", base::to_text(manifest))
                           .add({.name = "layer.tar", .base256 = true, .size = size})
                           .unfinished() +
                       inner;
    auto fd = file_with(outer);
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(outer.size()) + static_cast<off_t>(data) + 4096), 0);
    return fd;
}

std::vector<std::string> names_in(const std::string& path) {
    auto names = base::list_dir(path);
    return names ? *names : std::vector<std::string>{"(" + names.error().message + ")"};
}

std::vector<pid_t> children_of(pid_t parent) {
    std::vector<pid_t> children;
    for (const auto& task : names_in("/proc/" + std::to_string(parent) + "/task")) {
        std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + task + "/children");
        for (pid_t child; file >> child;) children.push_back(child);
    }
    return children;
}

std::string status_field(pid_t pid, const std::string& field) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(field + ":")) return line.substr(line.find_first_not_of(" \t", field.size() + 1));
    return {};
}

std::string link_of(pid_t pid, const std::string& what) {
    char target[4096];
    const auto n = ::readlink(("/proc/" + std::to_string(pid) + "/" + what).c_str(), target, sizeof target);
    return n < 0 ? "(gone)" : std::string(target, static_cast<std::size_t>(n));
}

std::string capabilities(std::initializer_list<int> kept) {
    std::uint64_t mask = 0;
    for (const int capability : kept) mask |= 1ull << capability;
    char text[32];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(mask));
    return text;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true; // their runtimes need system calls of their own: the helper has no filter then
#else
constexpr bool sanitized = false;
#endif

class image_crash : public store_test {
protected:
    /// Runs `work` on the store in a process that dies before step `step`; true if it finished instead.
    bool finishes(int step, const std::function<void(images::image_store&)>& work) {
        store.reset();
        const pid_t child = ::fork();
        if (child == 0) {
            auto dying = options;
            dying.on_step = [step](int n) {
                if (n == step) ::raise(SIGKILL);
            };
            auto opened = images::image_store::open(dying);
            if (!opened) ::_exit(3);
            work(**opened);
            ::_exit(0);
        }
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                    (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
            << status;
        reopen();
        return WIFEXITED(status);
    }

    /// Every layer on disk belongs to an image and every image has its layers.
    void expect_consistent() {
        std::set<std::string> used;
        for (const auto& image : store->list())
            for (const auto& layer : image.layers) {
                EXPECT_FALSE(names_in(layer).empty()) << layer;
                used.insert(layer.substr(layer.rfind('/') + 1));
            }
        const auto present = layer_dirs();
        EXPECT_EQ(std::set<std::string>(present.begin(), present.end()), used);
        EXPECT_TRUE(staging_is_empty());
    }

    const test_image old_image{.layers = {plain_layer(tar().file("old").str())}, .tags = {"app:1"}};
    const test_image new_image{.layers = {plain_layer(tar().file("new").str()), plain_layer(tar().file("two").str())},
                               .tags = {"app:1", "app:2"}};
};

TEST_F(image_crash, at_every_step_of_a_load_leaves_the_old_or_the_new_state) {
    load_one(docker_archive({old_image}));
    const auto before = store->list();
    const auto archive = docker_archive({new_image});
    int step = 1;
    while (true) {
        const bool finished = finishes(step, [&](images::image_store& dying) {
            const auto fd = file_with(archive);
            if (!dying.load(fd.get())) ::_exit(4);
        });
        expect_consistent();
        const auto now = store->resolve("app:2");
        if (now) {
            EXPECT_EQ(store->resolve("app:1")->id, new_image.id()) << "step " << step;
        } else {
            EXPECT_EQ(store->list(), before) << "step " << step;
        }
        if (finished) break;
        ASSERT_TRUE(store->remove(new_image.id()));
        ASSERT_TRUE(load(docker_archive({old_image})));
        ++step;
    }
    EXPECT_GE(step, 6); // two layers, the sync, before and after the index
}

TEST_F(image_crash, at_every_step_of_a_removal_leaves_the_old_or_the_new_state) {
    int step = 1;
    while (true) {
        load_one(docker_archive({new_image}));
        const auto before = store->list();
        const bool finished = finishes(step, [&](images::image_store& dying) {
            if (!dying.remove(new_image.id())) ::_exit(4);
        });
        expect_consistent();
        EXPECT_TRUE(store->list() == before || store->list().empty()) << "step " << step;
        if (finished) break;
        ++step;
    }
    EXPECT_TRUE(store->list().empty());
    EXPECT_GE(step, 5); // before and after the index, two layers out of sight, their deletion
}

TEST_F(image_crash, of_the_store_within_a_load_takes_the_helper_along) {
    load_one(docker_archive({old_image}));
    const auto before = store->list();
    store.reset();
    const pid_t child = ::fork();
    if (child == 0) {
        auto opened = images::image_store::open(options);
        images::load_options how;
        how.on_progress = [](const images::load_progress&) { ::raise(SIGKILL); };
        const auto archive = slow_archive();
        static_cast<void>((*opened)->load(archive.get(), how));
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    reopen(); // waits for the orphans
    EXPECT_EQ(store->list(), before);
    expect_consistent();
}

TEST_F(image_crash, of_the_helper_fails_the_load_and_nothing_else) {
    load_one(docker_archive({old_image}));
    const auto before = store->list();
    images::process* running = nullptr;
    options.spawn = [&](const images::spawn_request& request) {
        auto started = images::posix_spawner()(request);
        running = started->get();
        return started;
    };
    reopen();
    images::load_options how;
    how.on_progress = [&](const images::load_progress&) { running->kill(); };
    const auto archive = slow_archive();
    const auto loaded = store->load(archive.get(), how);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, code::unavailable);
    EXPECT_NE(loaded.error().message.find("killed by signal Killed"), std::string::npos) << loaded.error().message;
    EXPECT_EQ(store->list(), before);
    expect_consistent();
}

TEST_F(image_crash, of_a_worker_fails_the_load_by_name) {
    images::load_options how;
    how.on_progress = [&](const images::load_progress&) {
        for (const pid_t helper : children_of(::getpid()))
            for (const pid_t worker : children_of(helper)) ::kill(worker, SIGKILL);
    };
    const auto archive = slow_archive();
    const auto loaded = store->load(archive.get(), how);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, code::unavailable);
    EXPECT_NE(loaded.error().message.find("layer sha256:"), std::string::npos) << loaded.error().message;
    EXPECT_NE(loaded.error().message.find("killed by Killed"), std::string::npos) << loaded.error().message;
    expect_consistent();
}

TEST_F(image_crash, helper_that_is_not_there_is_named) {
    options.helper = "/nonexistent/helper";
    reopen();
    const auto loaded = load(docker_archive({old_image}));
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().message.find("/nonexistent/helper"), std::string::npos);
    expect_consistent();
}

TEST_F(image_crash, helper_that_says_nothing_is_reported_with_its_words) {
    options.helper = "/bin/ls"; // complains on stderr about an argument called load
    reopen();
    const auto loaded = load(docker_archive({old_image}));
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, code::unavailable);
    EXPECT_NE(loaded.error().message.find("load"), std::string::npos) << loaded.error().message;
}

TEST_F(image_crash, deadline_ends_a_load_whose_archive_never_ends) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    images::load_options how;
    how.deadline = std::chrono::steady_clock::now() + 100ms;
    const auto loaded = store->load(ends[0], how);
    ::close(ends[0]);
    ::close(ends[1]);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, code::timeout);
    EXPECT_TRUE(children_of(::getpid()).empty());
    expect_consistent();
}

TEST_F(image_crash, stop_request_cancels_a_load) {
    std::stop_source source;
    images::load_options how;
    how.stop = source.get_token();
    how.on_progress = [&](const images::load_progress&) { source.request_stop(); };
    const auto archive = slow_archive();
    const auto loaded = store->load(archive.get(), how);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, code::cancelled);
    expect_consistent();
}

// ---- what the helper's processes may do while they look at hostile bytes

TEST_F(image_crash, helper_is_confined_while_it_reads_the_archive) {
    if (sanitized) GTEST_SKIP() << "the helper has no system call filter in this build";
    const int leak = ::open("/etc/passwd", O_RDONLY); // not close-on-exec: must not reach the helper
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    std::jthread loading([&](std::stop_token stop) {
        images::load_options how;
        how.stop = stop;
        EXPECT_FALSE(store->load(ends[0], how));
    });
    pid_t helper = -1;
    for (const auto deadline = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < deadline;) {
        const auto children = children_of(::getpid());
        if (!children.empty() && status_field(children[0], "Seccomp") == "2") {
            helper = children[0];
            break;
        }
        std::this_thread::sleep_for(2ms);
    }
    ASSERT_GT(helper, 0) << "the helper was never confined";
    EXPECT_EQ(status_field(helper, "NoNewPrivs"), "1");
    const auto expected = capabilities({CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETPCAP,
                                        CAP_SYS_CHROOT, CAP_SYS_ADMIN, CAP_MKNOD, CAP_SETFCAP});
    EXPECT_EQ(status_field(helper, "CapPrm"), expected);
    EXPECT_EQ(status_field(helper, "CapBnd"), expected);
    for (const auto* space : {"ns/mnt", "ns/net", "ns/ipc", "ns/uts"})
        EXPECT_NE(link_of(helper, space), link_of(::getpid(), space));
    EXPECT_EQ(names_in("/proc/" + std::to_string(helper) + "/root"), std::vector<std::string>{"lower"});
    EXPECT_EQ(names_in("/proc/" + std::to_string(helper) + "/fd"), (std::vector<std::string>{"0", "1", "2", "3"}));
    loading.request_stop();
    loading.join();
    for (const int fd : {ends[0], ends[1], leak}) ::close(fd);
}

TEST_F(image_crash, workers_have_the_rights_of_their_job_only) {
    if (sanitized) GTEST_SKIP() << "the helper has no system call filter in this build";
    std::map<std::string, std::string> rights; // root's names -> permitted capabilities
    std::set<std::string> seccomp;
    std::stop_source source;
    images::load_options how;
    how.stop = source.get_token();
    how.on_progress = [&](const images::load_progress&) {
        if (source.stop_requested()) return;
        for (const pid_t helper : children_of(::getpid()))
            for (const pid_t worker : children_of(helper)) {
                std::string names;
                for (const auto& name : names_in("/proc/" + std::to_string(worker) + "/root")) names += name + " ";
                rights[names] = status_field(worker, "CapPrm");
                seccomp.insert(status_field(worker, "Seccomp"));
                EXPECT_EQ(status_field(worker, "NoNewPrivs"), "1");
            }
        source.request_stop();
    };
    const auto archive = slow_archive();
    EXPECT_FALSE(store->load(archive.get(), how));
    const std::map<std::string, std::string> expected{
        {"lower new ", capabilities({})},
        {"zeros ",
         capabilities({CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SYS_ADMIN, CAP_MKNOD, CAP_SETFCAP})}};
    EXPECT_EQ(rights, expected);
    EXPECT_EQ(seccomp, std::set<std::string>{"2"});
}

} // namespace
} // namespace gantry::test
