# gantry_add_plugin(NAME SOURCES a.cpp ... [LIBRARIES targets ...]): builds NAME.so as gantry loads it: hidden visibility,
# every symbol resolved at link time, and exactly one symbol exported (gantry_plugin_main).
set(GANTRY_PLUGIN_VERSION_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/gantry_plugin.map)

function(gantry_add_plugin name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(${name} MODULE ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE gantry::plugin-api ${arg_LIBRARIES})
  set_target_properties(${name} PROPERTIES
    PREFIX ""
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    LINK_DEPENDS ${GANTRY_PLUGIN_VERSION_SCRIPT})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  target_link_options(${name} PRIVATE
    -Wl,--version-script=${GANTRY_PLUGIN_VERSION_SCRIPT} -Wl,--exclude-libs,ALL -Wl,-z,now -Wl,-z,relro)
  if(NOT GANTRY_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
endfunction()
