# SPDX-License-Identifier: GPL-2.0-or-later
# Run by cpack on the installed files before packaging (CPACK_PRE_BUILD_SCRIPTS): changes for which Debian's
# policy differs from `cmake --install`.
set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
set(doc ${usr}/share/doc/${CPACK_PACKAGE_NAME})
if(NOT CPACK_PACKAGE_NAME STREQUAL gpuq)
  file(RENAME ${usr}/share/doc/gpuq ${doc})
endif()
find_program(GZIP gzip REQUIRED)
find_program(STRIP strip REQUIRED)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(GLOB pages ${usr}/share/man/man*/*.[1-9])
run(${GZIP} -9n ${pages})

# Debian's zsh reads vendor-completions, not site-functions.
file(RENAME ${usr}/share/zsh/site-functions ${usr}/share/zsh/vendor-completions)

# Debian includes the text of the GPL: `copyright` refers to it.
file(REMOVE ${doc}/LICENSE)
file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC) # uses SOURCE_DATE_EPOCH if set
file(WRITE ${doc}/changelog.Debian
     "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
     "  * Made by cpack; what is new is in changelog.gz.\n\n"
     " -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
run(${GZIP} -9n ${doc}/changelog ${doc}/changelog.Debian)

file(GLOB programs ${usr}/bin/* ${usr}/libexec/${CPACK_PACKAGE_NAME}/*)
foreach(program ${programs})
  file(READ ${program} magic LIMIT 4 HEX)
  if(magic STREQUAL 7f454c46) # ELF, not a script
    run(${STRIP} --remove-section=.comment --remove-section=.note ${program})
  endif()
endforeach()

file(MAKE_DIRECTORY ${usr}/share/lintian/overrides)
file(READ ${CPACK_GPUQ_PACKAGING}/lintian-overrides overrides)
string(REPLACE "gpuq: " "${CPACK_PACKAGE_NAME}: " overrides "${overrides}")
file(WRITE ${usr}/share/lintian/overrides/${CPACK_PACKAGE_NAME} "${overrides}")
