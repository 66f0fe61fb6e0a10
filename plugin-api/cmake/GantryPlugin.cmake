# gantry_add_plugin(NAME SOURCES a.cpp ... [LIBRARIES targets ...] [UNCHECKED]): builds NAME.so as gantry loads it: hidden
# visibility, every symbol resolved at link time, exactly one symbol exported (gantry_plugin_main), and the descriptor in an
# ELF note. The last two are checked after linking, unless UNCHECKED.
function(gantry_add_plugin name)
  cmake_parse_arguments(arg "UNCHECKED" "" "SOURCES;LIBRARIES" ${ARGN})
  set(exports ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/gantry_plugin.map)
  add_library(${name} MODULE ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE gantry::plugin-api ${arg_LIBRARIES})
  set_target_properties(${name} PROPERTIES
    PREFIX ""
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    LINK_DEPENDS ${exports})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  target_link_options(${name} PRIVATE
    -Wl,--version-script=${exports} -Wl,--exclude-libs,ALL -Wl,-z,now -Wl,-z,relro)
  if(NOT GANTRY_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
  if(NOT arg_UNCHECKED AND CMAKE_NM AND CMAKE_READELF)
    add_custom_command(TARGET ${name} POST_BUILD VERBATIM
      COMMAND ${CMAKE_COMMAND} -D NM=${CMAKE_NM} -D READELF=${CMAKE_READELF} -D FILE=$<TARGET_FILE:${name}>
              -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/GantryPluginCheck.cmake)
  endif()
endfunction()
