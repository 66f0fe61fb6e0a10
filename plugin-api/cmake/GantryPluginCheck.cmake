# cmake -D NM=nm -D READELF=readelf -D FILE=x.so -P GantryPluginCheck.cmake: fails when FILE is not a plugin library by its
# looks: one exported symbol, gantry_plugin_main, and at least one note of gantry's in a loaded segment.
execute_process(COMMAND ${NM} -D --defined-only ${FILE} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[0-9a-fA-F]+ [A-Za-z] " "" symbols "${symbols}")
string(STRIP "${symbols}" symbols)
if(NOT symbols STREQUAL "gantry_plugin_main")
  string(REPLACE "\n" ", " symbols "${symbols}")
  message(FATAL_ERROR "${FILE} must export gantry_plugin_main and nothing else, but exports: ${symbols}")
endif()
execute_process(COMMAND ${READELF} -nW ${FILE} OUTPUT_VARIABLE notes ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
if(NOT notes MATCHES "\n *gantry ")
  message(FATAL_ERROR "${FILE} has no gantry note: write GANTRY_PLUGIN or GANTRY_DESCRIPTOR in one of its sources")
endif()
