// `gantry-cri-helper load`: unpacks the images of an archive into a work directory. See request.hpp for the
// descriptors. Replies, one JSON object a line, the last one "done" or "error":
//   {"type":"progress","layer":DIFF_ID,"done":N,"total":N}
//   {"type":"warning","message":TEXT}
//   {"type":"layer","dir":"new/K","diffID":..,"chain":"" or the only one it fits,"bytes":N,"inodes":N,"opaqueRoot":B}
//   {"type":"image","id":..,"refs":[..],"manifestDigest":..,"config":{..},"layers":["lower/N"|"new/K", ..]}
#pragma once

namespace gantry::cri_helper {

/// Exit status for main.
int load_main();

} // namespace gantry::cri_helper
