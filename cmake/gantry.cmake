# What every folder's CMakeLists.txt uses: one flag set, one way to make a library, a program, a test.

include(precompiled)
include(unity)

# Unused functions are left out of what is shipped. Clang's sanitizers place coroutines' ends relative to their beginnings,
# which clang 14 cannot do across sections.
if(NOT (GANTRY_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES Clang))
  set(gantry_sections -ffunction-sections -fdata-sections)
endif()

add_library(gantry_flags INTERFACE)
target_compile_options(gantry_flags INTERFACE -Wall -Wextra -Wpedantic -Werror ${gantry_sections}
  -g1 $<$<CONFIG:RelWithDebInfo>:$<IF:$<BOOL:$<TARGET_PROPERTY:GANTRY_UNOPTIMISED>>,-O0,-O2>>
  # GCC 12 takes the frame of an inlined Asio coroutine for memory of another allocator.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-mismatched-new-delete>)
target_compile_definitions(gantry_flags INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ALLOW_DEPRECATED_HEADERS
  FMT_HEADER_ONLY=1 SPDLOG_FMT_EXTERNAL=1)
# Third-party headers come as system headers: their warnings are theirs.
target_include_directories(gantry_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/plugin-api/include)
target_link_options(gantry_flags INTERFACE -Wl,--gc-sections -Wl,--as-needed -Wl,--compress-debug-sections=zlib)
if(GANTRY_SANITIZE)
  # Not checked, at a third less compile time: what ASan reports as well (null), what needs the optimiser (object-size), what
  # x86 and ARM do not mind (alignment), and casts of polymorphic classes, of which we have next to none (vptr).
  target_compile_options(gantry_flags INTERFACE -fsanitize=${GANTRY_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all -fno-sanitize=null,object-size,alignment,vptr)
  # Asio's fences: GCC warns that TSan does not see them. They order nothing that its mutexes do not order as well.
  target_compile_options(gantry_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-tsan>)
  target_link_options(gantry_flags INTERFACE -fsanitize=${GANTRY_SANITIZE})
endif()

# gantry_library(NAME SOURCES a.cpp ... [DEPS targets ...]): a static, position-independent library `gantry_NAME`. A folder
# that sets GANTRY_PRECOMPILED gives its libraries that precompiled header.
function(gantry_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_library(gantry_${name} STATIC ${arg_SOURCES})
  target_link_libraries(gantry_${name} PUBLIC gantry_flags ${arg_DEPS})
  gantry_unite(gantry_${name})
  if(GANTRY_PRECOMPILED)
    gantry_precompile(gantry_${name} ${GANTRY_PRECOMPILED})
  endif()
endfunction()

# Builds what `ctest -L unit` runs: the sanitizer builds need no more.
add_custom_target(unit_tests)

# gantry_test(NAME SOURCES a_test.cpp ... [DEPS targets ...] [LABELS unit|root|...] [TIMEOUT s]): a GoogleTest program
# `NAME`, one ctest entry. Label `unit` needs no root and no kernel objects; `root` makes namespaces, cgroups or mounts.
function(gantry_test name)
  if(NOT GANTRY_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  find_package(GTest REQUIRED)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE gantry_flags ${arg_DEPS} GTest::gmock GTest::gtest_main)
  # Test bodies run once: compiling them fast matters more than running them fast. (An option of the target itself would
  # come before gantry_flags' and lose.)
  set_target_properties(${name} PROPERTIES GANTRY_UNOPTIMISED ON RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  gantry_unite(${name})
  gantry_precompile(${name} tests)
  if("unit" IN_LIST arg_LABELS)
    add_dependencies(unit_tests ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()

# gantry_subdirectories(): every folder below the current one that has a CMakeLists.txt, in order of name, `common` first.
function(gantry_subdirectories)
  file(GLOB entries RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  list(SORT entries)
  if("common/CMakeLists.txt" IN_LIST entries)
    list(REMOVE_ITEM entries common/CMakeLists.txt)
    list(PREPEND entries common/CMakeLists.txt)
  endif()
  foreach(entry IN LISTS entries)
    get_filename_component(folder ${entry} DIRECTORY)
    add_subdirectory(${folder})
  endforeach()
endfunction()
