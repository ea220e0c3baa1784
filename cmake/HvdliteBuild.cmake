# How every target of the project is compiled, and the one function that
# declares a library.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

find_program(HVDLITE_CCACHE ccache)
if(HVDLITE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache's manual asks for with precompiled headers; without
  # the folder in its keys what one clone has compiled serves the others, too.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${HVDLITE_CCACHE})
endif()

# Warnings and sanitizers, for the project's own targets only, and what unit tests
# need in their environment with them.
add_library(hvdlite_compile_options INTERFACE)
target_compile_options(hvdlite_compile_options INTERFACE
  -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${HVDLITE_WERROR}>:-Werror>)
set(HVDLITE_TEST_ENVIRONMENT)
if(HVDLITE_SANITIZER STREQUAL "thread")
  set(HVDLITE_TEST_ENVIRONMENT
    TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/testing/tsan_suppressions.txt)
endif()
if(HVDLITE_SANITIZER)
  target_compile_options(hvdlite_compile_options INTERFACE
    -fsanitize=${HVDLITE_SANITIZER} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  if(HVDLITE_SANITIZER MATCHES "undefined")
    # Compiling takes half the time without what AddressSanitizer sees, too, but for
    # a few cases.
    target_compile_options(hvdlite_compile_options INTERFACE
      -fno-sanitize=null,object-size,pointer-overflow,vptr)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER 13)
      # With these it takes no comparison of a function's address for a constant, as
      # Abseil's containers of 2024 need (GCC bug 71962).
      target_compile_options(hvdlite_compile_options INTERFACE
        -fno-sanitize=nonnull-attribute,returns-nonnull-attribute)
      # Abseil's libraries were built without sanitizers. Under AddressSanitizer its
      # containers of 2024 have other members in headers, unless this is defined, and
      # poison memory there that the libraries do not free of it.
      target_compile_definitions(hvdlite_compile_options INTERFACE NDEBUG_SANITIZER)
      set(HVDLITE_TEST_ENVIRONMENT ASAN_OPTIONS=allow_user_poisoning=0)
    endif()
  endif()
  target_link_options(hvdlite_compile_options INTERFACE
    -fsanitize=${HVDLITE_SANITIZER})
endif()
if(HVDLITE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "HVDLITE_FUZZ needs clang, which has libFuzzer: "
      "CXX=clang++ cmake --preset fuzz (Debian: apt-get install clang)")
  endif()
  target_compile_options(hvdlite_compile_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
# A fast linker, where there is one and nobody has chosen another.
include(CheckLinkerFlag)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_LINKER_TYPE AND NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION
    AND NOT "${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS}"
      MATCHES "-fuse-ld=|-flto")
  foreach(linker IN ITEMS mold lld)
    unset(HVDLITE_HAS_${linker} CACHE) # one that was removed since would end each link
    check_linker_flag(CXX -fuse-ld=${linker} HVDLITE_HAS_${linker})
    if(HVDLITE_HAS_${linker})
      target_link_options(hvdlite_compile_options INTERFACE -fuse-ld=${linker})
      break()
    endif()
  endforeach()
endif()
target_include_directories(hvdlite_compile_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)

# hvdlite_add_library(NAME SOURCES a.cc ... [DEPENDS target ...]
#                     [PRIVATE_DEPENDS target ...])
# A static library hvdlite_NAME with the alias hvdlite::NAME.
function(hvdlite_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(hvdlite_${name} STATIC ${arg_SOURCES})
  add_library(hvdlite::${name} ALIAS hvdlite_${name})
  target_link_libraries(hvdlite_${name}
    PUBLIC ${arg_DEPENDS}
    PRIVATE hvdlite_compile_options ${arg_PRIVATE_DEPENDS})
endfunction()

# hvdlite_reuse_headers(TARGET HOLDER)
# Compiles TARGET with the headers that HOLDER, a library, has precompiled. They
# must be compiled as TARGET is: with -fPIC, where executables have -fPIE.
function(hvdlite_reuse_headers target holder)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_compile_options(${target} PRIVATE -fpch-preprocess)
  target_precompile_headers(${target} REUSE_FROM ${holder})
endfunction()

# hvdlite_precompile_torch(TARGET)
# Compiles TARGET, whose files include most of LibTorch, with LibTorch's headers read
# once for all such targets: 16 s a file become 7. Loading them takes 5 s, so that
# a target whose files need only tensors is better off without.
function(hvdlite_precompile_torch target)
  if(NOT HVDLITE_PRECOMPILE_TORCH)
    return()
  endif()
  # tests/ has its own: its files are compiled with other options.
  set(holder hvdlite_torch_headers${HVDLITE_OWN_HEADERS})
  if(NOT TARGET ${holder})
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${holder}.cc CONTENT "")
    add_library(${holder} STATIC ${PROJECT_BINARY_DIR}/${holder}.cc)
    target_link_libraries(${holder} PRIVATE hvdlite_compile_options ${TORCH_LIBRARIES})
    target_compile_options(${holder} PRIVATE -fpch-preprocess)
    target_precompile_headers(${holder} PRIVATE <torch/torch.h>)
  endif()
  hvdlite_reuse_headers(${target} ${holder})
endfunction()

# hvdlite_precompile_gmock(TARGET)
# The same for a unit test's headers, where it is built with sanitizers or in unity: the
# build of dev tells of an #include that is missing.
function(hvdlite_precompile_gmock target)
  if(NOT (HVDLITE_SANITIZER OR CMAKE_UNITY_BUILD) OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(NOT TARGET hvdlite_gmock_headers)
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/gmock_headers.cc CONTENT "")
    add_library(hvdlite_gmock_headers STATIC ${PROJECT_BINARY_DIR}/gmock_headers.cc)
    target_link_libraries(hvdlite_gmock_headers
      PRIVATE hvdlite_compile_options GTest::gmock GTest::gtest absl::statusor absl::strings)
    target_compile_options(hvdlite_gmock_headers PRIVATE -fpch-preprocess)
    target_precompile_headers(hvdlite_gmock_headers PRIVATE
      <gmock/gmock.h> <gtest/gtest.h> <map> <memory> <string> <vector>
      <absl/status/statusor.h> <absl/strings/str_cat.h>)
  endif()
  hvdlite_reuse_headers(${target} hvdlite_gmock_headers)
endfunction()
