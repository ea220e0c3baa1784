# Script: writes a C++ file that defines the contents of text files as string constants.
#   cmake -DOUTPUT=page.cc -DHEADER=x/page.h -DNAMESPACE=a::b
#         -DTEXTS="kFrame=page.html|kScript=a.js,b.js" -P EmbedText.cmake
# HEADER declares each constant as extern const absl::string_view. Several files of one
# constant are concatenated. Relative paths are relative to DIRECTORY.
set(code "// Made by cmake/EmbedText.cmake.\n#include \"${HEADER}\"\n\n")
string(APPEND code "namespace ${NAMESPACE} {\n")
string(REPLACE "|" ";" texts "${TEXTS}")
foreach(text IN LISTS texts)
  string(REGEX MATCH "^([^=]+)=(.+)$" matched "${text}")
  set(name "${CMAKE_MATCH_1}")
  string(REPLACE "," ";" files "${CMAKE_MATCH_2}")
  string(APPEND code "const absl::string_view ${name} =\n")
  foreach(file IN LISTS files)
    file(READ "${DIRECTORY}/${file}" content)
    string(FIND "${content}" ")hvdlite_text" end)
    if(NOT end EQUAL -1)
      message(FATAL_ERROR "${file} contains the reserved text ')hvdlite_text'")
    endif()
    string(APPEND code "R\"hvdlite_text(${content})hvdlite_text\"\n")
  endforeach()
  string(APPEND code ";\n")
endforeach()
string(APPEND code "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${code}")
