// An image for tests, made from the machine's static busybox.
#pragma once

#include <string>

namespace gantry::cri_native::testing {

inline constexpr const char* image_name = "docker.io/library/busybox:test";

/// Makes a docker-archive in dir and gives its path. The image: busybox with its applets, users root, app (1000:1000,
/// home /home/app, also in group extra 2000) in passwd and group, ENV IMAGE=yes, CMD sh, STOPSIGNAL SIGTERM.
std::string make_busybox_archive(const std::string& dir);

} // namespace gantry::cri_native::testing
