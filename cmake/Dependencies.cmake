# SPDX-License-Identifier: GPL-2.0-or-later
# Third-party libraries, each as a target gpuq_libNAME. A self-contained build links their archives where possible:
# every shared library adds to the startup time and must be installed on the node as well.
include(${CMAKE_CURRENT_LIST_DIR}/Archives.cmake)

find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)

if(GPUQ_SELF_CONTAINED)
  gpuq_static_runtime()
endif()

find_package(fmt REQUIRED)
gpuq_library_fmt()

# Headers only, and only in src/log: the library would be one more to load at each start. With our {fmt}, not the
# shared one that spdlog's own target brings along.
find_package(spdlog REQUIRED)
get_target_property(spdlog_headers spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
add_library(gpuq_libspdlog INTERFACE)
target_include_directories(gpuq_libspdlog SYSTEM INTERFACE ${spdlog_headers})
target_compile_definitions(gpuq_libspdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(gpuq_libspdlog INTERFACE gpuq_libfmt Threads::Threads)

find_package(yaml-cpp REQUIRED)
set(yaml_cpp yaml-cpp::yaml-cpp)
if(NOT TARGET ${yaml_cpp}) # before 0.8
  set(yaml_cpp yaml-cpp)
endif()
gpuq_library(yaml_cpp SHARED ${yaml_cpp} ARCHIVES libyaml-cpp.a)

# For users' regular expressions, in linear time. Older releases have no CMake file; newer ones require Abseil.
find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
find_library(RE2_LIBRARY re2 REQUIRED)
gpuq_library(re2 INCLUDES ${RE2_INCLUDE_DIR} SHARED ${RE2_LIBRARY}
             ARCHIVES libre2.a SIBLINGS libabsl_*.a NEEDS Threads::Threads)

find_package(ZLIB REQUIRED)
gpuq_library(z INCLUDES ${ZLIB_INCLUDE_DIRS} SHARED ZLIB::ZLIB ARCHIVES libz.a)

# SHA-256 of the files of snapshots.
find_path(NETTLE_INCLUDE_DIR nettle/sha2.h REQUIRED)
find_library(NETTLE_LIBRARY nettle REQUIRED)
gpuq_library(nettle INCLUDES ${NETTLE_INCLUDE_DIR} SHARED ${NETTLE_LIBRARY} ARCHIVES libnettle.a)

set(CURSES_NEED_WIDE TRUE)
find_package(Curses REQUIRED)
gpuq_library(curses INCLUDES ${CURSES_INCLUDE_DIRS} SHARED ${CURSES_LIBRARIES} ARCHIVES libncursesw.a libtinfo.a)

# Headers only: `--host` loads the library itself.
find_path(LIBSSH_INCLUDE_DIR libssh/libssh.h REQUIRED)
gpuq_library(ssh INCLUDES ${LIBSSH_INCLUDE_DIR})

if(GPUQ_CLIENT)
  return()
endif()

# Slurm's plugin on Debian uses 5.1; our scripts support 5.1 to 5.4.
find_package(Lua 5.1 REQUIRED)
gpuq_library(lua INCLUDES ${LUA_INCLUDE_DIR} SHARED ${LUA_LIBRARIES}
             ARCHIVES liblua${LUA_VERSION_MAJOR}.${LUA_VERSION_MINOR}.a|liblua.a NEEDS m ${CMAKE_DL_LIBS})

# Slurm has no package file, only headers and a library, perhaps under SLURM_ROOT. Always linked to the site's shared library.
if(SLURM_ROOT)
  set(slurm_hints NO_DEFAULT_PATH PATHS ${SLURM_ROOT})
  # The loader does not search that directory by default, so installed programs need its path as well.
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
endif()
find_path(SLURM_INCLUDE_DIR slurm/slurm.h PATH_SUFFIXES include ${slurm_hints} REQUIRED)
find_library(SLURM_LIBRARY slurm PATH_SUFFIXES lib lib64 lib/slurm lib64/slurm ${slurm_hints} REQUIRED)
gpuq_library(slurm INCLUDES ${SLURM_INCLUDE_DIR} SHARED ${SLURM_LIBRARY})
