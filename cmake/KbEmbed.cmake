# SPDX-License-Identifier: Apache-2.0
# kb_embed(<target> <namespace> <root> FILES <path>...)
#
# Compiles files into the target as `const kb::EmbeddedFile kb::<namespace>::kFiles[]` with their paths relative to
# <root>; the declaration is in "<namespace with _>_files.hpp". A change of a file rebuilds it.
function(kb_embed target namespace root)
  cmake_parse_arguments(E "" "" "FILES" ${ARGN})
  string(REPLACE "::" "_" stem ${namespace})
  set(cpp ${CMAKE_BINARY_DIR}/generated/${stem}_files.cpp)
  set(hpp ${CMAKE_BINARY_DIR}/generated/${stem}_files.hpp)
  set(inputs)
  foreach(f IN LISTS E_FILES)
    list(APPEND inputs ${root}/${f})
  endforeach()
  add_custom_command(
    OUTPUT ${cpp} ${hpp}
    COMMAND ${CMAKE_COMMAND} -DNAMESPACE=${namespace} -DROOT=${root} "-DFILES=${E_FILES}" -DCPP=${cpp} -DHPP=${hpp}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${inputs} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "embedding ${namespace}" VERBATIM)
  target_sources(${target} PRIVATE ${cpp} ${hpp})
endfunction()
