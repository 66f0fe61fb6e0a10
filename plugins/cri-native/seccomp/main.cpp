// gantry-seccomp CAPABILITIES [PROFILE]: compiles a seccomp profile for a process that keeps the capabilities (a
// hexadecimal mask) and writes the filter to standard output. Without PROFILE it is the default one. A process of its
// own, so that neither libseccomp nor its memory stays with the node.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/files.hpp"
#include "plugins/cri-native/seccomp/profile.hpp"

namespace {

gantry::result<std::string> filter_of(int argc, char** argv) {
    using gantry::code;
    if (argc < 2 || argc > 3)
        return gantry::error{.code = code::invalid, .message = "usage: gantry-seccomp CAPABILITIES [PROFILE]"};
    char* end = nullptr;
    const std::uint64_t capabilities = std::strtoull(argv[1], &end, 16);
    if (end == argv[1] || *end != '\0')
        return gantry::error{.code = code::invalid, .message = std::string(argv[1]) + " is no hexadecimal mask"};
    if (argc == 2) return gantry::seccomp::compile(gantry::seccomp::default_profile(capabilities));
    GANTRY_TRY(const auto text, gantry::base::read_file(argv[2], 4u << 20));
    GANTRY_TRY(const auto profile, gantry::seccomp::parse_profile(text, capabilities));
    return gantry::seccomp::compile(profile);
}

} // namespace

int main(int argc, char** argv) {
    const auto filter = filter_of(argc, argv);
    if (!filter) {
        std::fprintf(stderr, "%s\n", filter.error().message.c_str());
        return 1;
    }
    const char* at = filter->data();
    for (std::size_t left = filter->size(); left > 0;) {
        const ssize_t n = ::write(STDOUT_FILENO, at, left);
        if (n < 0) {
            std::perror("write the filter");
            return 1;
        }
        at += n;
        left -= static_cast<std::size_t>(n);
    }
    return 0;
}
