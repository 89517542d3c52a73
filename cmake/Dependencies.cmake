# SPDX-License-Identifier: GPL-2.0-or-later
find_package(fmt REQUIRED)
set(gpuq_fmt fmt::fmt)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
set(gpuq_yaml_cpp yaml-cpp)
find_package(Threads REQUIRED)

# What a site installs carries its C++ libraries inside: looking for their symbols takes half a
# millisecond of every start, and neither program then depends on a node's libstdc++.
if(GPUQ_SELF_CONTAINED)
  if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
    add_library(gpuq_fmt STATIC cmake/fmt.cpp)
    get_target_property(fmt_headers fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
    target_include_directories(gpuq_fmt SYSTEM PUBLIC ${fmt_headers})
    set(gpuq_fmt gpuq_fmt)
  else()
    set(gpuq_fmt fmt::fmt-header-only)
  endif()
  find_library(YAML_CPP_ARCHIVE libyaml-cpp.a REQUIRED)
  set(gpuq_yaml_cpp ${YAML_CPP_ARCHIVE})
  set(CMAKE_EXE_LINKER_FLAGS "${CMAKE_EXE_LINKER_FLAGS} -static-libstdc++ -static-libgcc")
  # Lines for backtraces, but not the variables: halves what the compiler has to write.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
endif()

# Slurm ships no package file: a header and a library, perhaps under SLURM_ROOT.
if(SLURM_ROOT)
  set(slurm_hints NO_DEFAULT_PATH PATHS ${SLURM_ROOT})
  # The loader does not look there by itself; an installed program must name the folder too.
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
endif()
find_path(SLURM_INCLUDE_DIR slurm/slurm.h PATH_SUFFIXES include ${slurm_hints} REQUIRED)
find_library(SLURM_LIBRARY slurm PATH_SUFFIXES lib lib64 lib/slurm lib64/slurm ${slurm_hints} REQUIRED)
add_library(gpuq_libslurm INTERFACE)
target_include_directories(gpuq_libslurm SYSTEM INTERFACE ${SLURM_INCLUDE_DIR})
target_link_libraries(gpuq_libslurm INTERFACE ${SLURM_LIBRARY})
