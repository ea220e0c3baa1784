# Man pages of the installed programs, which help2man makes from their --help. Without
# help2man there are none.

find_program(HVDLITE_HELP2MAN help2man)
if(NOT HVDLITE_HELP2MAN)
  message(STATUS "help2man was not found: man pages will not be made (Debian: help2man)")
endif()

# hvdlite_add_man_page(PROGRAM DESCRIPTION)
# Makes and installs the man page of PROGRAM, together with the target `programs`.
# DESCRIPTION is the line that whatis and apropos print.
function(hvdlite_add_man_page program description)
  # Programs of another architecture cannot print their help here.
  if(NOT HVDLITE_HELP2MAN OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  set(page ${PROJECT_BINARY_DIR}/man/${program}.1)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
    COMMAND ${HVDLITE_HELP2MAN} --no-info --name=${description}
      --version-string=${PROJECT_VERSION} "--source=hvdlite ${PROJECT_VERSION}"
      --output=${page} $<TARGET_FILE:${program}>
    DEPENDS ${program} VERBATIM
    COMMENT "Making the man page of ${program}")
  add_custom_target(hvdlite_${program}_man ALL DEPENDS ${page})
  add_dependencies(programs hvdlite_${program}_man)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
endfunction()
