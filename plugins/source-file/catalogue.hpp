// Which pods the files together mean, and what of that the reader has not been told yet. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plugins/source-file/manifest.hpp"

namespace gantry::source_file {

class catalogue {
public:
    /// The file's pods are these now.
    void set(const std::string& path, std::vector<static_pod> pods);
    /// The path cannot be read: its last good pods stay.
    void refuse(const std::string& path, std::string why);
    /// The file is gone, and its pods and faults with it.
    void forget(const std::string& path);

    std::vector<std::string> paths() const;
    bool knows(const std::string& path) const { return files_.contains(path); }

    /// Items of the watch (gantry.pod-source), JSON, that lead from what the last call said to what holds now: removals
    /// first, then additions and updates by path, then faults. Of pods that claim one name or UID the first path's
    /// wins, and the others' files get a fault.
    std::vector<std::string> changes();

private:
    struct file {
        std::vector<static_pod> pods;
        std::string why; ///< not empty: the last reading failed
    };
    struct announced_pod {
        std::string namespace_;
        std::string name;
        std::string digest;
    };

    std::map<std::string, file> files_;
    std::map<std::string, announced_pod> announced_; ///< by UID
    std::map<std::string, std::string> told_faults_; ///< path -> message
};

} // namespace gantry::source_file
