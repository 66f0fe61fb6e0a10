# Precompiled headers, so that nobody parses Asio or GoogleMock a hundred times. One for each set of compiler flags: GCC
# refuses one that was made with others. No source relies on them: each includes what it uses, and the clang build has none.
#
# core: static libraries with Asio and JSON.   tests: the test programs.

function(gantry_make_precompiled kind target)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>) # lets ccache see through it
  if(kind STREQUAL "core")
    target_link_libraries(${target} PRIVATE gantry_flags gantry_json)
    target_precompile_headers(${target} PRIVATE <algorithm> <chrono> <functional> <map> <memory> <mutex> <optional> <string>
      <thread> <vector> <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp> <boost/asio/detached.hpp>
      <boost/asio/io_context.hpp> <boost/asio/post.hpp> <boost/asio/redirect_error.hpp> <boost/asio/steady_timer.hpp>
      <boost/asio/use_awaitable.hpp> <boost/json.hpp>)
  else()
    target_link_libraries(${target} PRIVATE gantry_flags GTest::gmock)
    target_precompile_headers(${target} PRIVATE <algorithm> <chrono> <functional> <map> <memory> <optional> <string> <thread>
      <vector> <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endfunction()

# gantry_precompile(TARGET KIND): makes the target use the header of that kind.
function(gantry_precompile target kind)
  if(NOT GANTRY_PRECOMPILED_HEADERS)
    return()
  endif()
  set(source ${CMAKE_BINARY_DIR}/precompiled_${kind}.cpp)
  if(NOT TARGET gantry_precompiled_${kind})
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() { return 0; }\n")
    if(kind STREQUAL "core")
      add_library(gantry_precompiled_core STATIC ${source})
    else()
      add_executable(gantry_precompiled_tests ${source}) # a program: -fPIE, as the tests
      set_target_properties(gantry_precompiled_tests PROPERTIES GANTRY_UNOPTIMISED ON)
    endif()
    gantry_make_precompiled(${kind} gantry_precompiled_${kind})
  endif()
  # GCC 12 forgets that what it precompiled are system headers, and gives its false alarms about std::string.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread>)
  target_precompile_headers(${target} REUSE_FROM gantry_precompiled_${kind})
endfunction()
