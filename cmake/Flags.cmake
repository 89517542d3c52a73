# SPDX-License-Identifier: GPL-2.0-or-later
# Compiler settings for all first-party code, as one INTERFACE target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

find_program(CCACHE ccache)
if(CCACHE)
  # Without these ccache keeps nothing that was compiled with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

add_library(gpuq_flags INTERFACE)
target_compile_options(gpuq_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wconversion
  -Wno-missing-field-initializers -Wno-sign-conversion
  # Wrong about std::optional at -O2, in another place with each release of g++ (GCC bug 80635).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<BOOL:${GPUQ_WERROR}>:-Werror>
  -fstack-protector-strong
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=) # assert() prints src/..., not build paths
target_compile_definitions(gpuq_flags INTERFACE _GLIBCXX_ASSERTIONS GPUQ_VERSION="${PROJECT_VERSION}")
target_link_options(gpuq_flags INTERFACE -Wl,-z,relro,-z,now -Wl,--as-needed)

if(GPUQ_COVERAGE)
  # Absolute paths, since gcovr looks for the sources from the build directory. Threads may lose counts, but not all of a
  # line: atomic counters would double the time of the tests.
  target_compile_options(gpuq_flags INTERFACE -fprofile-arcs -ftest-coverage -fprofile-abs-path)
  add_library(gpuq_coverage_exit STATIC ${PROJECT_SOURCE_DIR}/cmake/coverage_exit.c)
  target_link_libraries(gpuq_flags INTERFACE gpuq_coverage_exit)
  target_link_options(gpuq_flags INTERFACE --coverage -Wl,--wrap=_exit)
endif()

if(GPUQ_SANITIZE)
  # The check of virtual calls probes memory through a pipe: without free descriptors, which tests provoke, it reports
  # valid objects.
  target_compile_options(gpuq_flags INTERFACE -fsanitize=${GPUQ_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer
                                              -fno-sanitize-recover=all)
  target_link_options(gpuq_flags INTERFACE -fsanitize=${GPUQ_SANITIZE})
  if(GPUQ_COVERAGE)
    # Used by CI: these two checks of every pointer take a third of its compile time. A null pointer that is followed also
    # ends a test by the address sanitizer; preset asan, which contrib/soak.sh runs, has both.
    target_compile_options(gpuq_flags INTERFACE -fno-sanitize=null,alignment)
  endif()
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  # FORTIFY requires optimisation and is incompatible with sanitizers.
  target_compile_options(gpuq_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()
