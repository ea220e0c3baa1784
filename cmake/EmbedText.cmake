# Script: writes a C++ file that defines texts of other files.
#   cmake -DOUTPUT=page.cc -DHEADER=x/page.h -DNAMESPACE=a::b
#         -DTEXTS="kFrame=page.html|kScript=a.js,b.js" -P EmbedText.cmake
# HEADER declares each as extern const absl::string_view; several files of one
# text follow one another. Relative paths are taken from FOLDER.
set(code "// Made by cmake/EmbedText.cmake.\n#include \"${HEADER}\"\n\n")
string(APPEND code "namespace ${NAMESPACE} {\n")
string(REPLACE "|" ";" texts "${TEXTS}")
foreach(text IN LISTS texts)
  string(REGEX MATCH "^([^=]+)=(.+)$" matched "${text}")
  set(name "${CMAKE_MATCH_1}")
  string(REPLACE "," ";" files "${CMAKE_MATCH_2}")
  string(APPEND code "const absl::string_view ${name} =\n")
  foreach(file IN LISTS files)
    file(READ "${FOLDER}/${file}" content)
    string(FIND "${content}" ")hvdlite_text" end)
    if(NOT end EQUAL -1)
      message(FATAL_ERROR "${file} has )hvdlite_text in it")
    endif()
    string(APPEND code "R\"hvdlite_text(${content})hvdlite_text\"\n")
  endforeach()
  string(APPEND code ";\n")
endforeach()
string(APPEND code "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${code}")
