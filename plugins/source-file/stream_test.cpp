// On a real directory with real inotify.
#include "plugins/source-file/stream.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/files.hpp"
#include "base/json.hpp"

namespace gantry::source_file {

namespace {

using namespace std::chrono_literals;

std::string manifest(const std::string& name, const std::string& image = "nginx:1.25") {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: c, image: '" + image +
           "'}]}\n";
}

class source_file_stream : public ::testing::Test {
protected:
    source_file_stream() : root_(make_root()), dir_(root_ + "/manifests") { ::mkdir(dir_.c_str(), 0755); }
    ~source_file_stream() override {
        stop();
        (void)base::remove_tree(root_);
    }

    static std::string make_root() {
        char name[] = "/tmp/gantry-source-XXXXXX";
        return ::mkdtemp(name);
    }

    void start(const std::string& path, std::chrono::milliseconds relist = 20s) {
        items_.clear();
        thread_ = std::jthread([this, path, relist](const std::stop_token& token) {
            stream files({.path = path, .relist = relist, .node_name = "n1", .state_dir = root_ + "/state"},
                         [this](const std::string& item) -> result<void> {
                             std::unique_lock lock(mutex_);
                             waiting_ = true;
                             arrived_.notify_all();
                             arrived_.wait(lock, [&] { return !hold_; });
                             waiting_ = false;
                             items_.push_back(item);
                             arrived_.notify_all();
                             return {};
                         });
            (void)files.run(token);
        });
    }
    void stop() {
        if (!thread_.joinable()) return;
        thread_.request_stop();
        thread_.join();
    }

    /// The next item as "TYPE name" or "FAULT message".
    std::string next(std::chrono::milliseconds time = 10s) {
        std::unique_lock lock(mutex_);
        if (!arrived_.wait_for(lock, time, [&] { return !items_.empty(); })) return "nothing";
        const auto item = base::parse_json(items_.front(), "item")->as_object();
        items_.pop_front();
        const std::string type(item.at("type").as_string());
        if (type == "SYNCED") return type;
        if (type == "FAULT") return type + " " + std::string(item.at("message").as_string());
        last_uid_ = item.at("pod").at("metadata").at("uid").as_string();
        return type + " " + std::string(item.at("pod").at("metadata").at("name").as_string());
    }
    /// The reader of items takes no more until release(); held() waits until one is offered.
    void hold() {
        const std::lock_guard lock(mutex_);
        hold_ = true;
    }
    bool held() {
        std::unique_lock lock(mutex_);
        return arrived_.wait_for(lock, 10s, [&] { return waiting_; });
    }
    void release() {
        const std::lock_guard lock(mutex_);
        hold_ = false;
        arrived_.notify_all();
    }
    void expect_silence(std::chrono::milliseconds time = 300ms) { EXPECT_EQ(next(time), "nothing"); }

    void write(const std::string& name, const std::string& text) const { std::ofstream(dir_ + "/" + name) << text; }
    void move(const std::string& from, const std::string& to) const {
        ASSERT_EQ(::rename((dir_ + "/" + from).c_str(), (dir_ + "/" + to).c_str()), 0);
    }
    void remove(const std::string& name) const { ASSERT_EQ(::unlink((dir_ + "/" + name).c_str()), 0); }

    std::string root_, dir_, last_uid_;

private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<std::string> items_;
    bool hold_ = false;
    bool waiting_ = false;
    std::jthread thread_;
};

} // namespace

TEST_F(source_file_stream, begins_with_what_is_there) {
    write("b.yaml", manifest("b"));
    write("a.yaml", manifest("a"));
    write(".hidden.yaml", manifest("hidden"));
    ASSERT_EQ(::mkdir((dir_ + "/sub").c_str(), 0755), 0);
    ASSERT_EQ(::mkfifo((dir_ + "/pipe").c_str(), 0600), 0);
    start(dir_);
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(next(), "ADD b-n1");
    EXPECT_EQ(next(), "SYNCED");
    expect_silence();
}

TEST_F(source_file_stream, follows_files_as_they_come_change_and_go) {
    start(dir_);
    EXPECT_EQ(next(), "SYNCED");
    write("a.yaml", manifest("a"));
    EXPECT_EQ(next(), "ADD a-n1");
    const auto first = last_uid_;
    write("a.yaml", manifest("a", "nginx:1.26"));
    EXPECT_EQ(next(), "REMOVE a-n1");
    EXPECT_EQ(last_uid_, first);
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_NE(last_uid_, first);
    remove("a.yaml");
    EXPECT_EQ(next(), "REMOVE a-n1");
}

TEST_F(source_file_stream, restarts_a_pod_whose_file_is_deleted_and_written_again) {
    write("a.yaml", manifest("a"));
    start(dir_);
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(next(), "SYNCED");
    const auto uid = last_uid_;
    remove("a.yaml");
    write("a.yaml", manifest("a"));
    EXPECT_EQ(next(), "REMOVE a-n1");
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(last_uid_, uid);
}

TEST_F(source_file_stream, does_not_read_a_file_that_is_being_written) {
    start(dir_, 50ms);
    EXPECT_EQ(next(), "SYNCED");
    const std::string text = manifest("slow");
    {
        std::ofstream file(dir_ + "/slow.yaml");
        file << text.substr(0, 40) << std::flush;
        expect_silence(); // several listings pass
        file << text.substr(40);
    }
    EXPECT_EQ(next(), "ADD slow-n1");
    expect_silence(100ms);
}

TEST_F(source_file_stream, takes_an_editor_save_for_the_one_change_it_is) {
    write("a.yaml", manifest("a"));
    start(dir_);
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(next(), "SYNCED");
    write(".a.yaml.swp", "b0VIM");
    move("a.yaml", "a.yaml~"); // as vim does with backupcopy=no
    write("a.yaml", manifest("a"));
    remove("a.yaml~");
    remove(".a.yaml.swp");
    expect_silence();
    write("a.yaml.new", ""); // and as sed -i, rsync, kubeadm do
    write("a.yaml.new", manifest("b"));
    EXPECT_EQ(next(), "ADD b-n1");
    move("a.yaml.new", "a.yaml");
    std::vector<std::string> three{next(), next(), next()};
    std::sort(three.begin(), three.begin() + 2);
    EXPECT_EQ(three, (std::vector<std::string>{"REMOVE a-n1", "REMOVE b-n1", "ADD b-n1"}));
    expect_silence();
}

TEST_F(source_file_stream, removes_the_pods_of_a_file_that_is_moved_away) {
    write("a.yaml", manifest("a"));
    start(dir_);
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(next(), "SYNCED");
    ASSERT_EQ(::rename((dir_ + "/a.yaml").c_str(), (root_ + "/elsewhere").c_str()), 0);
    EXPECT_EQ(next(), "REMOVE a-n1");
    ASSERT_EQ(::rename((root_ + "/elsewhere").c_str(), (dir_ + "/a.yaml").c_str()), 0);
    EXPECT_EQ(next(), "ADD a-n1");
}

TEST_F(source_file_stream, keeps_the_pods_of_a_file_that_breaks) {
    write("a.yaml", manifest("a"));
    start(dir_);
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(next(), "SYNCED");
    const auto uid = last_uid_;
    write("a.yaml", manifest("a") + "  oops: [\n");
    EXPECT_EQ(next().substr(0, 6 + dir_.size() + 8), "FAULT " + dir_ + "/a.yaml:");
    write("a.yaml", manifest("a"));
    EXPECT_EQ(next(), "FAULT ");
    write("a.yaml", "kind: [");
    EXPECT_EQ(next().substr(0, 5), "FAULT");
    remove("a.yaml");
    EXPECT_EQ(next(), "REMOVE a-n1");
    EXPECT_EQ(last_uid_, uid);
    EXPECT_EQ(next(), "FAULT ");
}

TEST_F(source_file_stream, keeps_the_pods_of_a_broken_file_over_a_restart) {
    write("a.yaml", manifest("a"));
    write("b.yaml", manifest("b"));
    start(dir_);
    EXPECT_EQ(next(), "ADD a-n1");
    const auto uid = last_uid_;
    EXPECT_EQ(next(), "ADD b-n1");
    EXPECT_EQ(next(), "SYNCED");
    stop();
    write("a.yaml", "kind: [");
    remove("b.yaml");
    start(dir_);
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(last_uid_, uid);
    EXPECT_EQ(next().substr(0, 5), "FAULT");
    EXPECT_EQ(next(), "SYNCED");
    remove("a.yaml");
    EXPECT_EQ(next(), "REMOVE a-n1");
    EXPECT_EQ(next(), "FAULT ");
    stop();
    EXPECT_TRUE(base::list_dir(root_ + "/state")->empty());
    write("a.yaml", "kind: ["); // nothing is known of it any more
    start(dir_);
    EXPECT_EQ(next().substr(0, 5), "FAULT");
    EXPECT_EQ(next(), "SYNCED");
}

TEST_F(source_file_stream, resolves_a_backup_beside_the_manifest_the_same_way_each_time) {
    write("a.yaml.bak", manifest("a", "old"));
    write("a.yaml", manifest("a", "new"));
    start(dir_);
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(next(), "FAULT " + dir_ + "/a.yaml.bak: pod default/a-n1 is also in " + dir_ +
                          "/a.yaml, which wins; remove one of them");
    EXPECT_EQ(next(), "SYNCED");
    remove("a.yaml.bak");
    EXPECT_EQ(next(), "FAULT ");
}

TEST_F(source_file_stream, reads_links_at_once_and_follows_a_mounted_config_map) {
    ASSERT_EQ(::mkdir((dir_ + "/..1").c_str(), 0755), 0);
    ASSERT_EQ(::mkdir((dir_ + "/..2").c_str(), 0755), 0);
    write("..1/a.yaml", manifest("a"));
    write("..2/a.yaml", manifest("b"));
    ASSERT_EQ(::symlink("..1", (dir_ + "/..data").c_str()), 0);
    start(dir_);
    EXPECT_EQ(next(), "SYNCED");
    ASSERT_EQ(::symlink("..data/a.yaml", (dir_ + "/a.yaml").c_str()), 0);
    EXPECT_EQ(next(), "ADD a-n1");
    ASSERT_EQ(::symlink("..2", (dir_ + "/..tmp").c_str()), 0);
    move("..tmp", "..data");
    EXPECT_EQ(next(), "REMOVE a-n1");
    EXPECT_EQ(next(), "ADD b-n1");
}

TEST_F(source_file_stream, finds_by_listing_what_no_event_told) {
    ASSERT_EQ(::mkdir((root_ + "/target").c_str(), 0755), 0);
    const std::string target = root_ + "/target/a.yaml";
    std::ofstream(target) << manifest("a");
    ASSERT_EQ(::symlink(target.c_str(), (dir_ + "/a.yaml").c_str()), 0);
    start(dir_, 100ms);
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(next(), "SYNCED");
    std::ofstream(target) << manifest("b"); // outside the watched directory
    EXPECT_EQ(next(), "REMOVE a-n1");
    EXPECT_EQ(next(), "ADD b-n1");
}

TEST_F(source_file_stream, takes_a_missing_directory_for_an_empty_one_and_finds_it_when_it_comes) {
    ASSERT_EQ(::rmdir(dir_.c_str()), 0);
    start(dir_);
    EXPECT_EQ(next(), "FAULT stat " + dir_ + ": No such file or directory");
    EXPECT_EQ(next(), "SYNCED");
    ASSERT_EQ(::mkdir(dir_.c_str(), 0755), 0);
    write("a.yaml", manifest("a"));
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(next(), "FAULT ");
    ASSERT_TRUE(base::remove_tree(dir_));
    EXPECT_EQ(next(), "REMOVE a-n1");
    EXPECT_EQ(next(), "FAULT stat " + dir_ + ": No such file or directory");
}

TEST_F(source_file_stream, reads_a_single_file) {
    write(".one", manifest("a")); // named outright, a leading dot does not hide it
    write("two", manifest("b"));
    start(dir_ + "/.one");
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(next(), "SYNCED");
    write("two", manifest("c"));
    write(".one", manifest("d"));
    EXPECT_EQ(next(), "REMOVE a-n1");
    EXPECT_EQ(next(), "ADD d-n1");
    remove(".one");
    EXPECT_EQ(next(), "REMOVE d-n1");
    write(".one", manifest("e"));
    EXPECT_EQ(next(), "ADD e-n1");
}

TEST_F(source_file_stream, refuses_a_file_of_more_than_ten_megabytes) {
    start(dir_);
    EXPECT_EQ(next(), "SYNCED");
    write("big.yaml", manifest("a") + "# " + std::string(10u << 20, 'x'));
    EXPECT_EQ(next(), "FAULT " + dir_ + "/big.yaml is larger than 10485760 bytes");
}

TEST_F(source_file_stream, lists_again_when_the_kernel_lost_events) {
    long queue = 0;
    std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> queue;
    start(dir_);
    EXPECT_EQ(next(), "SYNCED");
    write("noise.tmp", "");
    hold();
    write("a.yaml", manifest("a"));
    ASSERT_TRUE(held()); // nobody reads events now
    for (long i = 0; i <= queue; i += 4) {
        move("noise.tmp", "noise~");
        move("noise~", "noise.tmp");
    }
    write("b.yaml", manifest("b"));
    release();
    EXPECT_EQ(next(), "ADD a-n1");
    EXPECT_EQ(next(), "ADD b-n1");
}

} // namespace gantry::source_file
