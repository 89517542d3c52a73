# SPDX-License-Identifier: GPL-2.0-or-later
# Headers included by most files, precompiled once instead of parsed 400 times: saves a third of a full build's
# time. Files must still include every header they use; contrib/lint.sh compiles without this.
set(gpuq_common_headers <algorithm> <chrono> <filesystem> <fmt/format.h> <functional> <map> <memory> <optional>
                        <string> <string_view> <vector>)

# TARGET is compiled with OWNER's precompiled HEADERs; both need the same flags.
function(gpuq_precompile target owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

# A module is a directory under src/ (or FOLDER), such as cli/render, and a static library (gpuq_cli_render); it links only
# the targets in CMakeLists.txt.
# OPTIMISED: also in Debug builds, for tests that process hundreds of thousands of jobs.
function(gpuq_module name)
  cmake_parse_arguments(ARG "OPTIMISED" "FOLDER" "LINKS;PRIVATE" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER src/${name})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${ARG_FOLDER}/*.cpp)
  string(REPLACE / _ name ${name})
  if(sources)
    add_library(gpuq_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(gpuq_${name} PRIVATE gpuq_flags ${ARG_PRIVATE})
    if(ARG_OPTIMISED)
      target_compile_options(gpuq_${name} PRIVATE -O2)
      gpuq_precompile(gpuq_${name} gpuq_${name} ${gpuq_common_headers})
    else()
      gpuq_precompile(gpuq_${name} gpuq_core ${gpuq_common_headers})
    endif()
  else()
    add_library(gpuq_${name} INTERFACE) # headers only
    set(scope INTERFACE)
  endif()
  # The root for "tui/NAME.h"; never src/MODULE/, whose names another module may have as well.
  target_include_directories(gpuq_${name} ${scope} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(gpuq_${name} ${scope} ${ARG_LINKS})
endfunction()

# Not installed without DESTINATION.
function(gpuq_program name)
  cmake_parse_arguments(ARG "" "DESTINATION" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PRIVATE gpuq_flags ${ARG_LINKS} Threads::Threads)
  if(ARG_DESTINATION)
    install(TARGETS ${name} DESTINATION ${ARG_DESTINATION})
  endif()
endfunction()

# Installs the output of `gpuq completion SHELL` at PLACE below share/.
function(gpuq_completion shell place)
  set(script ${PROJECT_BINARY_DIR}/share/${place})
  get_filename_component(folder ${place} DIRECTORY)
  get_filename_component(name ${place} NAME)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/${folder})
  add_custom_command(OUTPUT ${script} COMMAND gpuq completion ${shell} > ${script} DEPENDS gpuq VERBATIM)
  add_custom_target(completion-${shell} ALL DEPENDS ${script})
  install(FILES ${script} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} RENAME ${name})
endfunction()
