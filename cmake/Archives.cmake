# SPDX-License-Identifier: GPL-2.0-or-later
# Static linking by trial: an archive is used if a test program links with it on this machine. The presence of
# the file is not enough: Debian 13's libre2.a requires Abseil, Debian 12's does not.

# RESULT: whether trials/NAME.cpp and SOURCES link with LIBRARIES and OPTIONS, position-independent like our programs.
# Repeated at each configuration, since a system upgrade changes the archives.
function(gpuq_try result name)
  cmake_parse_arguments(ARG "" "" "SOURCES;INCLUDES;LIBRARIES;OPTIONS" ${ARGN})
  if(CMAKE_CXX_LINK_PIE_SUPPORTED)
    list(APPEND ARG_OPTIONS -pie)
  endif()
  try_compile(GPUQ_TRIAL ${PROJECT_BINARY_DIR}/CMakeFiles/trials/${name}
              SOURCES ${PROJECT_SOURCE_DIR}/cmake/trials/${name}.cpp ${ARG_SOURCES}
              CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${ARG_INCLUDES}"
              LINK_OPTIONS ${ARG_OPTIONS} LINK_LIBRARIES ${ARG_LIBRARIES}
              CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
  message(STATUS "Static ${name}: ${GPUQ_TRIAL}")
  set(${result} ${GPUQ_TRIAL} PARENT_SCOPE)
  unset(GPUQ_TRIAL CACHE)
endfunction()

# RESULT: paths of the archives NAMES (a|b: the first one that exists); empty unless all are found.
function(gpuq_find_archives result)
  set(found)
  foreach(name ${ARGN})
    string(MAKE_C_IDENTIFIER GPUQ_${name} variable)
    string(REPLACE "|" ";" alternatives ${name})
    find_library(${variable} NAMES ${alternatives})
    mark_as_advanced(${variable})
    list(APPEND found ${${variable}})
  endforeach()
  if(found MATCHES "-NOTFOUND")
    set(found)
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# Defines the target gpuq_libNAME with headers in INCLUDES and the libraries SHARED. A self-contained build uses ARCHIVES
# and NEEDS instead if trials/NAME.cpp links with them, or with them and all SIBLINGS in the same directory.
function(gpuq_library name)
  cmake_parse_arguments(ARG "" "SIBLINGS" "INCLUDES;SHARED;ARCHIVES;NEEDS" ${ARGN})
  set(libraries ${ARG_SHARED})
  if(GPUQ_SELF_CONTAINED)
    gpuq_find_archives(archives ${ARG_ARCHIVES})
  endif()
  if(archives)
    gpuq_try(linked ${name} INCLUDES ${ARG_INCLUDES} LIBRARIES ${archives} ${ARG_NEEDS})
    if(NOT linked AND ARG_SIBLINGS)
      list(GET archives 0 first)
      cmake_path(GET first PARENT_PATH folder)
      file(GLOB siblings ${folder}/${ARG_SIBLINGS})
      # They depend on each other in any order. A single argument, so that CMake keeps them together.
      list(JOIN siblings "," siblings)
      list(APPEND archives "-Wl,--start-group,${siblings},--end-group")
      gpuq_try(linked ${name} INCLUDES ${ARG_INCLUDES} LIBRARIES ${archives} ${ARG_NEEDS})
    endif()
    if(linked)
      set(libraries ${archives} ${ARG_NEEDS})
    endif()
  endif()
  add_library(gpuq_lib${name} INTERFACE)
  target_include_directories(gpuq_lib${name} SYSTEM INTERFACE ${ARG_INCLUDES})
  target_link_libraries(gpuq_lib${name} INTERFACE ${libraries})
endfunction()

# Links libstdc++ and libgcc statically if the compiler has archives of them: symbol lookup in libstdc++ takes half a
# millisecond at every start, and a node may have an older version.
macro(gpuq_static_runtime)
  gpuq_try(linked runtime OPTIONS -static-libstdc++ -static-libgcc)
  if(linked)
    string(APPEND CMAKE_EXE_LINKER_FLAGS " -static-libstdc++ -static-libgcc")
  endif()
endmacro()

# Defines the target gpuq_libfmt. Debian ships {fmt} as a shared library, or as headers that every file would compile
# again (three seconds each). A self-contained build compiles the headers once, if a test program links with the result.
function(gpuq_library_fmt)
  get_target_property(headers fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  set(source ${PROJECT_SOURCE_DIR}/cmake/fmt.cpp)
  if(GPUQ_SELF_CONTAINED)
    gpuq_try(linked fmt_once SOURCES ${source} INCLUDES ${headers})
  endif()
  if(linked)
    add_library(gpuq_libfmt STATIC ${source})
    target_include_directories(gpuq_libfmt SYSTEM PUBLIC ${headers})
  elseif(GPUQ_SELF_CONTAINED)
    gpuq_library(fmt SHARED fmt::fmt-header-only)
  else()
    gpuq_library(fmt SHARED fmt::fmt)
  endif()
endfunction()
