// What a pod's worker writes down, since the runtime cannot know it: one small file per pod.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/pod/backoff.hpp"
#include "gantry/model/pod.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

struct pod_record {
    std::string namespace_{};
    std::string name{};
    base::wall_time start_time{};
    bool admitted = false;                              ///< it passed admission, and need not pass it again
    std::map<std::string, backoff> restarts{};          ///< by container
    std::shared_ptr<const model::pod_status> final_status{}; ///< set once the pod has ended
};

std::string encode(const pod_record& record);
result<pod_record> decode_record(std::string_view text);

} // namespace gantry::core
