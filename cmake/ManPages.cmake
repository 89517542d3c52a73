# SPDX-License-Identifier: GPL-2.0-or-later
# Installs the man pages. Target `html` formats them into html/PAGE.html of the build directory, with links between
# the pages and the pictures that they name; it exists if CMake finds mandoc.
find_program(MANDOC mandoc)
set(formatted)
foreach(section 1 5 7)
  file(GLOB pages CONFIGURE_DEPENDS man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  foreach(page ${pages})
    get_filename_component(name ${page} NAME)
    set(file ${PROJECT_BINARY_DIR}/html/${name}.html)
    add_custom_command(OUTPUT ${file} DEPENDS ${page} VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/html
      COMMAND ${MANDOC} -T html ${page} > ${file}
      COMMAND sed -i -E "s#<b>(gpuq[a-z-]*)</b>[(]([157])[)]#<a href=\"\\1.\\2.html\">\\1(\\2)</a>#g" ${file}
      COMMAND sed -i -E "s#<i>([a-z-]+[.]svg)</i>#<img src=\"\\1\" alt=\"\\1\" style=\"max-width:100%\">#g" ${file})
    list(APPEND formatted ${file})
  endforeach()
endforeach()
file(GLOB pictures CONFIGURE_DEPENDS contrib/pictures/*.svg)
if(MANDOC)
  add_custom_target(html DEPENDS ${formatted}
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${pictures} ${PROJECT_BINARY_DIR}/html)
endif()
