// The folder of a fake host, temporary or given, and the durable values kept in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace gantry::fake {

class folder {
public:
    /// Empty: a temporary one, removed at the end. A given one is made and stays, so that another host can go on with
    /// it.
    explicit folder(const std::string& given = {}) : path_(given), temporary_(given.empty()) {
        if (temporary_) make_temporary();
        for (const char* name : {"state", "run", "kv"}) std::filesystem::create_directories(path_ + '/' + name);
    }
    ~folder() {
        std::error_code ignored;
        if (temporary_) std::filesystem::remove_all(path_, ignored);
    }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;

    std::string state() const { return path_ + "/state"; }
    std::string run() const { return path_ + "/run"; }

    static bool is_key(const std::string& key) {
        return !key.empty() && key.size() <= 128 && key != "." && key != ".." &&
               key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
                   std::string::npos;
    }
    bool put(const std::string& key, const std::string& value) const {
        if (value.empty()) {
            std::filesystem::remove(file(key));
            return true;
        }
        std::ofstream out(file(key), std::ios::binary | std::ios::trunc);
        out << value;
        return out.good();
    }
    bool get(const std::string& key, std::string& value) const {
        std::ifstream in(file(key), std::ios::binary);
        if (!in) return false;
        value.assign(std::istreambuf_iterator<char>(in), {});
        return true;
    }
    std::vector<std::string> keys() const {
        std::vector<std::string> out;
        for (const auto& one : std::filesystem::directory_iterator(path_ + "/kv"))
            out.push_back(one.path().filename().string());
        return out;
    }

private:
    void make_temporary() {
        std::string pattern = (std::filesystem::temp_directory_path() / "gantry-fake-XXXXXX").string();
        if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
    }
    std::string file(const std::string& key) const { return path_ + "/kv/" + key; }
    std::string path_;
    bool temporary_;
};

} // namespace gantry::fake
