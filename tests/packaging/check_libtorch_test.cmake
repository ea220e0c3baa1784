# ctest runs this test: cmake -P check_libtorch_test.cmake. It feeds the diagnosis of
# LibTorch (cmake/CheckLibTorch.cmake) with invented output of readelf and nm.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/CheckLibTorch.cmake)

set(debian_dynamic "\
 0x0000000000000001 (NEEDED)             Shared library: [libfmt.so.9]
 0x0000000000000001 (NEEDED)             Shared library: [libgomp.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libprotobuf.so.32]
 0x000000000000000e (SONAME)             Library soname: [libtorch_cpu.so.1.13]
")

# expect(CASE kind pattern ...): the diagnosis must have exactly one message of
# KIND (errors or warnings) that matches PATTERN, and no other message. With KIND none,
# there must be no message. ABI, if given, is the expected ABI. The other arguments are
# passed to the diagnosis; they override those of a healthy LibTorch.
function(expect case kind pattern)
  cmake_parse_arguments(arg "" "ABI;VERSION;CXX_FLAGS;DYNAMIC;SYMBOLS;CONSTRUCTORS" "" ${ARGN})
  foreach(default IN ITEMS
      "VERSION=1.13.0" "CXX_FLAGS=-D_GLIBCXX_USE_CXX11_ABI=1"
      "DYNAMIC=${debian_dynamic}" "SYMBOLS=" "CONSTRUCTORS=" "ABI=")
    string(REGEX MATCH "^([A-Z_]+)=(.*)$" _ "${default}")
    if(NOT DEFINED arg_${CMAKE_MATCH_1})
      set(arg_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
    endif()
  endforeach()
  hvdlite_diagnose_libtorch(ERRORS errors WARNINGS warnings ABI abi
    LIBRARY /opt/libtorch/lib/libtorch_cpu.so VERSION "${arg_VERSION}"
    CXX_FLAGS "${arg_CXX_FLAGS}" DYNAMIC "${arg_DYNAMIC}"
    SYMBOLS "${arg_SYMBOLS}" CONSTRUCTORS "${arg_CONSTRUCTORS}"
    PROTOBUF_SONAME libprotobuf.so.32 MPI_SONAME libmpich.so.12)
  if(arg_ABI AND NOT abi STREQUAL arg_ABI)
    message(SEND_ERROR "${case}: expected the ABI ${arg_ABI}, got ${abi}")
  endif()
  foreach(list IN ITEMS errors warnings)
    list(LENGTH ${list} count)
    if(list STREQUAL kind)
      if(NOT count EQUAL 1 OR NOT ${list} MATCHES "${pattern}")
        message(SEND_ERROR "${case}: expected one of ${list} with '${pattern}', got ${count}: ${${list}}")
      elseif(NOT ${list} MATCHES "Remedy:" OR NOT ${list} MATCHES "/opt/libtorch")
        message(SEND_ERROR "${case}: no remedy or no path in: ${${list}}")
      endif()
    elseif(count GREATER 0)
      message(SEND_ERROR "${case}: unexpected ${list}: ${${list}}")
    endif()
  endforeach()
  message(STATUS "checked: ${case}")
endfunction()

expect("Debian's LibTorch is accepted" none "")
expect("Unreadable libraries are accepted" none "" DYNAMIC " " SYMBOLS " ")
expect("Pre-C++11-ABI build is an error" errors "pre-C\\+\\+11-ABI"
  CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")
set(old_constructor "b9 T _ZN3c105ErrorC1ENS_14SourceLocationESs\n")
set(new_constructor "b9 T _ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE\n")
expect("A library with the old std::string is an error without any flag" errors
  "takes the old std::string" CXX_FLAGS " " CONSTRUCTORS "${old_constructor}" ABI "pre-C++11")
expect("The library's own symbols count more than its flags" errors
  "takes the old std::string" CONSTRUCTORS "${old_constructor}" ABI "pre-C++11")
expect("A library with the new std::string is accepted without any flag" none ""
  CXX_FLAGS " " CONSTRUCTORS "${new_constructor}" ABI "C++11")
expect("The flags show the ABI if symbols cannot be read" none "" ABI "C++11")
expect("Without flags and symbols the ABI is unknown" none "" CXX_FLAGS " " ABI "unknown")
expect("Version 1.12 is an error" errors "too old" VERSION 1.12.1)
expect("Version 2.5 is accepted" none "" VERSION 2.5.1)
expect("Exported Protobuf is an error" errors "exports its own Protobuf"
  SYMBOLS "0000 T _ZN6google8protobuf8internal13VerifyVersionEiiPKc\n")
expect("Another libprotobuf is an error" errors "libprotobuf.so.23"
  DYNAMIC " (NEEDED) Shared library: [libprotobuf.so.23]\n (NEEDED) [libgomp.so.1]\n")
expect("No libprotobuf at all is accepted" none ""
  DYNAMIC " (NEEDED) Shared library: [libgomp.so.1]\n")
expect("Another MPI is an error" errors "needs libmpi.so.40.*with libmpich.so.12"
  DYNAMIC " (NEEDED) Shared library: [libgomp.so.1]\n (NEEDED) [libmpi.so.40]\n")
expect("The same MPI is accepted" none ""
  DYNAMIC " (NEEDED) Shared library: [libgomp.so.1]\n (NEEDED) [libmpich.so.12]\n")
expect("A bundled libgomp is a warning" warnings "libgomp-a34b3233.so.1"
  DYNAMIC " (NEEDED) Shared library: [libgomp-a34b3233.so.1]\n")
expect("Intel's OpenMP is a warning" warnings "libiomp5.so"
  DYNAMIC " (NEEDED) Shared library: [libiomp5.so]\n")
expect("Two OpenMP runtimes are a warning" warnings "two OpenMP runtimes"
  DYNAMIC " (NEEDED) Shared library: [libgomp.so.1]\n (NEEDED) [libiomp5.so]\n")
