# Checks whether the LibTorch that was found can be used. The diagnosis works on text
# (the output of readelf and nm), so that tests can feed it with other text
# (tests/packaging/check_libtorch_test.cmake). hvdlite_check_libtorch gathers that text.

# hvdlite_diagnose_libtorch(ERRORS var WARNINGS var ABI var LIBRARY path VERSION version
#   CXX_FLAGS flags DYNAMIC text SYMBOLS text CONSTRUCTORS text PROTOBUF_SONAME name
#   MPI_SONAME name)
#
# Sets ERRORS and WARNINGS to lists of messages, each with its remedy. After an error
# hvdlite cannot work; after a warning it may. No message contains a semicolon. Sets ABI
# to the std::string that LibTorch was compiled with: 'C++11', 'pre-C++11' or 'unknown'.
#   LIBRARY          path of libtorch_cpu, for the messages
#   CXX_FLAGS        TORCH_CXX_FLAGS
#   DYNAMIC          output of `readelf -d libtorch_cpu.so`
#   SYMBOLS          the lines of `nm -D --defined-only` with VerifyVersion
#   CONSTRUCTORS     the constructors of c10::Error in `nm -D --defined-only libc10.so`
#   PROTOBUF_SONAME  soname of the libprotobuf that hvdlite links
#   MPI_SONAME       soname of the MPI library that hvdlite links
function(hvdlite_diagnose_libtorch)
  cmake_parse_arguments(arg ""
    "ERRORS;WARNINGS;ABI;LIBRARY;VERSION;CXX_FLAGS;DYNAMIC;SYMBOLS;CONSTRUCTORS;PROTOBUF_SONAME;MPI_SONAME"
    "" ${ARGN})
  set(errors "")
  set(warnings "")
  set(debian "install Debian's libtorch-dev (apt-get install libtorch-dev)")

  if(arg_VERSION AND arg_VERSION VERSION_LESS 1.13)
    list(APPEND errors "LibTorch ${arg_VERSION} (${arg_LIBRARY}) is too old: \
hvdlite needs 1.13 or later. Remedy: ${debian} or a newer release.")
  endif()

  # Up to 2.6 there are two downloads of LibTorch, one with the old ABI. The symbols of the
  # library count more than the flags of its package.
  set(abi unknown)
  if(arg_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
    set(abi "pre-C++11")
    set(witness "its flags contain _GLIBCXX_USE_CXX11_ABI=0")
  elseif(arg_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=1")
    set(abi "C++11")
  endif()
  if(arg_CONSTRUCTORS MATCHES "_ZN3c105ErrorC[^\n]*7__cxx11")
    set(abi "C++11")
  elseif(arg_CONSTRUCTORS MATCHES "_ZN3c105ErrorC[^\n]*Ss")
    set(abi "pre-C++11")
    set(witness "c10::Error takes the old std::string")
  endif()
  if(abi STREQUAL "pre-C++11")
    list(APPEND errors "LibTorch at ${arg_LIBRARY} is a pre-C++11-ABI build \
(${witness}): its std::string differs from that of Abseil, Protobuf and GoogleTest here, so \
programs could not be linked. Remedy: use the 'cxx11 ABI' download of LibTorch (file name \
libtorch-cxx11-abi-..., from 2.7 on every download has this ABI), or ${debian}.")
  endif()

  # hvdlite's generated code must call the libprotobuf that it was generated for. A
  # LibTorch that hides its own copy causes no problem.
  if(arg_SYMBOLS MATCHES "_ZN6google8protobuf8internal13VerifyVersionE")
    list(APPEND errors "LibTorch at ${arg_LIBRARY} exports its own Protobuf \
(google::protobuf::internal::VerifyVersion). Together with ${arg_PROTOBUF_SONAME} \
the process would have two, and calls of one would reach the other. \
Remedy: use a LibTorch that hides its copy or uses the system's, or ${debian}.")
  endif()
  string(REGEX MATCHALL "libprotobuf(-lite)?\\.so[.0-9]*" protobufs "${arg_DYNAMIC}")
  list(REMOVE_DUPLICATES protobufs)
  foreach(protobuf IN LISTS protobufs)
    if(protobuf MATCHES "^libprotobuf\\.so" AND arg_PROTOBUF_SONAME
       AND NOT protobuf STREQUAL arg_PROTOBUF_SONAME)
      list(APPEND errors "LibTorch at ${arg_LIBRARY} needs ${protobuf}, but \
hvdlite would be linked with ${arg_PROTOBUF_SONAME}. A process with two versions of \
Protobuf aborts at its start. Remedy: set CMAKE_PREFIX_PATH to the prefix of the \
Protobuf that LibTorch was built with, or ${debian} and libprotobuf-dev.")
    endif()
  endforeach()

  # Debian 13's LibTorch is linked with Open MPI.
  if(arg_DYNAMIC MATCHES "libmpi(ch)?\\.so[.0-9]*")
    set(mpi ${CMAKE_MATCH_0})
    if(arg_MPI_SONAME AND NOT mpi STREQUAL arg_MPI_SONAME)
      list(APPEND errors "LibTorch at ${arg_LIBRARY} needs ${mpi}, but hvdlite would \
be linked with ${arg_MPI_SONAME}. In a process with two MPIs, calls of one would reach \
the other. Remedy: set -DMPI_CXX_COMPILER=/path/to/mpicxx to the MPI that LibTorch was \
built with, or use a LibTorch without MPI, such as PyTorch's downloads.")
    endif()
  endif()

  string(REGEX MATCHALL "lib(gomp|iomp5|omp)(-[0-9a-f]+)?\\.so[.0-9]*" runtimes
    "${arg_DYNAMIC}")
  list(REMOVE_DUPLICATES runtimes)
  list(LENGTH runtimes count)
  list(JOIN runtimes " and " named)
  if(count GREATER 1)
    list(APPEND warnings "LibTorch at ${arg_LIBRARY} needs two OpenMP runtimes \
(${named}). Each starts its own thread pool, and together they use more \
threads than there are cores. Remedy: use a LibTorch with one runtime, or ${debian}.")
  elseif(count EQUAL 1 AND NOT runtimes STREQUAL "libgomp.so.1")
    list(APPEND warnings "LibTorch at ${arg_LIBRARY} has its own OpenMP runtime \
${named}. A program that is compiled with -fopenmp, or that loads an \
OpenMP build of OpenBLAS, has a second one (libgomp.so.1) with its own \
threads. Remedy: avoid OpenMP in the rest of the program, preload one runtime \
(LD_PRELOAD), or ${debian}.")
  endif()

  set(${arg_ABI} "${abi}" PARENT_SCOPE)
  set(${arg_ERRORS} "${errors}" PARENT_SCOPE)
  set(${arg_WARNINGS} "${warnings}" PARENT_SCOPE)
endfunction()

# Sets OUT to the soname of a shared library, or to its file name if it has none.
function(hvdlite_read_soname library out)
  get_filename_component(file "${library}" REALPATH)
  get_filename_component(soname "${file}" NAME)
  if(CMAKE_READELF)
    execute_process(COMMAND ${CMAKE_READELF} -d ${file}
      OUTPUT_VARIABLE dynamic ERROR_QUIET)
    if(dynamic MATCHES "SONAME[^\n]*\\[([^]\n]+)\\]")
      set(soname "${CMAKE_MATCH_1}")
    endif()
  endif()
  set(${out} "${soname}" PARENT_SCOPE)
endfunction()

# Inspects the LibTorch that find_package(Torch) found. Prints all warnings and errors;
# errors end the configuration.
function(hvdlite_check_libtorch)
  set(library "")
  if(TARGET torch_cpu)
    get_target_property(library torch_cpu LOCATION)
  endif()
  set(dynamic "")
  set(symbols "")
  if(library AND CMAKE_READELF)
    execute_process(COMMAND ${CMAKE_READELF} -d ${library}
      OUTPUT_VARIABLE dynamic ERROR_QUIET)
  endif()
  if(library AND CMAKE_NM)
    execute_process(COMMAND ${CMAKE_NM} -D --defined-only ${library}
      COMMAND grep google8protobuf8internal13VerifyVersion
      OUTPUT_VARIABLE symbols ERROR_QUIET)
  endif()
  set(constructors "")
  if(TARGET c10 AND CMAKE_NM)
    get_target_property(c10 c10 LOCATION)
    execute_process(COMMAND ${CMAKE_NM} -D --defined-only ${c10}
      COMMAND grep _ZN3c105ErrorC1
      OUTPUT_VARIABLE constructors ERROR_QUIET)
  endif()
  hvdlite_read_soname("${Protobuf_LIBRARY}" protobuf_soname)
  set(mpi ${MPI_CXX_LIBRARIES})
  list(FILTER mpi INCLUDE REGEX "/libmpi(ch)?\\.so")
  hvdlite_read_soname("${mpi}" mpi_soname)
  hvdlite_diagnose_libtorch(ERRORS errors WARNINGS warnings ABI abi
    LIBRARY "${library}" VERSION "${Torch_VERSION}"
    CXX_FLAGS "${TORCH_CXX_FLAGS}" DYNAMIC "${dynamic}" SYMBOLS "${symbols}"
    CONSTRUCTORS "${constructors}" PROTOBUF_SONAME "${protobuf_soname}"
    MPI_SONAME "${mpi_soname}")
  hvdlite_libtorch_files(files)
  hvdlite_diagnose_mixture(mixture FILES ${files} TORCH_DIR "${Torch_DIR}"
    CAFFE2_DIR "${Caffe2_DIR}")
  list(APPEND errors ${mixture})
  foreach(warning IN LISTS warnings)
    message(WARNING "${warning}")
  endforeach()
  foreach(error IN LISTS errors)
    message(SEND_ERROR "${error}")
  endforeach()
  if(errors)
    message(FATAL_ERROR "The LibTorch that was found cannot be used; see above.")
  endif()
  message(STATUS "LibTorch ${Torch_VERSION}, ${abi} ABI: ${library}")
endfunction()
