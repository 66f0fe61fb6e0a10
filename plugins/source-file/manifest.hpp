// A manifest file's text as static pods. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::source_file {

struct static_pod {
    std::string uid;
    std::string namespace_;
    std::string name;
    std::string digest; ///< changes when the manifest's meaning does
    std::string json;   ///< the whole Pod, as a pod source gives it
};

/// Every Pod of the text (YAML or JSON, several documents, Pod, PodList or List), each with what a kubelet adds to a
/// static pod: a UID that follows from node, file and content unless the manifest gives one; the node's name behind the
/// pod's; namespace `default`; kubernetes.io/config annotations; a toleration of every NoExecute taint. All or nothing:
/// the error reads "FILE:LINE: what". [any]
result<std::vector<static_pod>> read_manifest(std::string_view text, std::string_view file, std::string_view node_name,
                                              base::wall_time seen);

/// 32 hexadecimal digits of a 128-bit FNV-1a over node, file and the manifest, whatever the order of its keys.
std::string static_pod_uid(const base::json::value& manifest, std::string_view file, std::string_view node_name);

} // namespace gantry::source_file
