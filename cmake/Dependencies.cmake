# SPDX-License-Identifier: GPL-2.0-or-later
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Threads REQUIRED)

# Slurm ships no package file: a header and a library, perhaps under SLURM_ROOT.
if(SLURM_ROOT)
  set(slurm_hints NO_DEFAULT_PATH PATHS ${SLURM_ROOT})
endif()
find_path(SLURM_INCLUDE_DIR slurm/slurm.h PATH_SUFFIXES include ${slurm_hints} REQUIRED)
find_library(SLURM_LIBRARY slurm PATH_SUFFIXES lib lib64 lib/slurm lib64/slurm ${slurm_hints} REQUIRED)
add_library(gpuq_libslurm INTERFACE)
target_include_directories(gpuq_libslurm SYSTEM INTERFACE ${SLURM_INCLUDE_DIR})
target_link_libraries(gpuq_libslurm INTERFACE ${SLURM_LIBRARY})
