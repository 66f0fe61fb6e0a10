# Precompiled headers, so that nobody parses Asio, protobuf's messages or GoogleMock a hundred times. One for each set of
# compiler flags: GCC refuses one that was made with others. No source relies on them: each includes what it uses, and the
# clang build has none.
#
# A folder chooses the kind of its libraries by GANTRY_PRECOMPILED; test programs have the kind `tests`.
set(gantry_precompiled_standard <algorithm> <chrono> <functional> <map> <memory> <mutex> <optional> <string> <thread> <vector>)
set(gantry_precompiled_core ${gantry_precompiled_standard} <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp>
  <boost/asio/detached.hpp> <boost/asio/io_context.hpp> <boost/asio/post.hpp> <boost/asio/redirect_error.hpp>
  <boost/asio/steady_timer.hpp> <boost/asio/use_awaitable.hpp> <boost/json.hpp>)
set(gantry_precompiled_plugins ${gantry_precompiled_standard} <boost/json.hpp>)
set(gantry_precompiled_cri ${gantry_precompiled_plugins} <gantry/sdk/plugin.hpp> <proto/cri.pb.h>)
set(gantry_precompiled_tests ${gantry_precompiled_standard} <gmock/gmock.h> <gtest/gtest.h>)
set(gantry_precompiled_links_core gantry_json)
set(gantry_precompiled_links_plugins gantry_json)
set(gantry_precompiled_links_cri gantry_json gantry_proto_cri)
set(gantry_precompiled_links_tests GTest::gmock)

# gantry_precompile(TARGET KIND): makes the target use the header of that kind.
function(gantry_precompile target kind)
  if(NOT GANTRY_PRECOMPILED_HEADERS)
    return()
  endif()
  set(owner gantry_precompiled_${kind})
  if(NOT TARGET ${owner})
    set(source ${CMAKE_BINARY_DIR}/precompiled_${kind}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() { return 0; }\n")
    if(kind STREQUAL "tests")
      add_executable(${owner} ${source}) # a program: -fPIE, as the tests
      set_target_properties(${owner} PROPERTIES GANTRY_UNOPTIMISED ON)
    else()
      add_library(${owner} STATIC ${source})
    endif()
    target_compile_options(${owner} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>) # lets ccache see through it
    target_link_libraries(${owner} PRIVATE gantry_flags ${gantry_precompiled_links_${kind}})
    target_precompile_headers(${owner} PRIVATE ${gantry_precompiled_${kind}})
  endif()
  # GCC 12 forgets that what it precompiled are system headers, and gives its false alarms about std::string.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess -Wno-array-bounds
    -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-maybe-uninitialized>)
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
