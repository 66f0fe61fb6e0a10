// gantry-cri-helper: what cri-native does with input it does not trust, or too seldom to keep in memory. Started for
// one job, gone after it.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "plugins/cri-native/helper/load.hpp"

int main(int argc, char** argv) {
    struct verb {
        std::string_view name;
        int (*run)();
    };
    constexpr verb verbs[] = {{"load", gantry::cri_helper::load_main}};
    for (const auto& [name, run] : verbs)
        if (argc == 2 && name == argv[1]) std::_Exit(run()); // nothing to tidy, and nothing to tidy with in the sandbox
    std::fprintf(stderr,
                 "usage: gantry-cri-helper load   (cri-native starts it; the request is read from descriptor 0)\n");
    return 2;
}
