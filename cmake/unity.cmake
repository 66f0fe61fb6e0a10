# Unity builds: several sources of one target are compiled as one, so that what they share (Asio's coroutines, protobuf's
# containers, our own templates) is instantiated and optimised once. It halves the time of a full build. Names in anonymous
# namespaces therefore have to differ within a target; the clang build compiles each source alone and so keeps the includes
# honest.
function(gantry_unite target)
  if(NOT GANTRY_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  # GCC takes the united source for a header of the sources in it, whose anonymous namespaces it then warns of.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
