// A forked process of the helper that does one job with few rights and reports over a pipe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/json.hpp"
#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/helper/report.hpp"

namespace gantry::cri_helper {

/// The destructor kills and reaps one that still runs.
class worker {
public:
    /// Runs `work` in a child that keeps only stderr, its report pipe and `kept` open. Its error is reported.
    static result<worker> start(std::vector<int> kept, const std::function<result<void>(const reporter&)>& work);

    worker(worker&& other) noexcept;
    worker& operator=(worker&&) = delete;
    ~worker();

    int fd() const noexcept { return reports_.get(); }
    bool running() const noexcept { return pid_ > 0; }
    /// Reads what the child sent and hands each message on. At the end of its stream reaps it; an error of its own, or
    /// a death without one, is then the result.
    result<void> receive(const std::function<result<void>(const base::json::object&)>& on_message);

private:
    worker(pid_t pid, base::unique_fd reports);

    pid_t pid_ = -1;
    base::unique_fd reports_;
    line_splitter lines_;
};

} // namespace gantry::cri_helper
