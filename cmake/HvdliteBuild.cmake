# Compiler and linker options of all targets, and the functions that declare a library and
# precompile headers.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

find_program(HVDLITE_CCACHE ccache)
if(HVDLITE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache's manual asks for this sloppiness with precompiled headers. The other two
  # settings let all clones share what one of them has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${HVDLITE_CCACHE})
endif()

# Warnings and sanitizers, for the project's own targets only, and the environment
# variables that unit tests need with sanitizers.
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
    # AddressSanitizer finds most of these errors, too, and without them compiling takes
    # half the time.
    target_compile_options(hvdlite_compile_options INTERFACE
      -fno-sanitize=null,object-size,pointer-overflow,vptr)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER 13)
      # With these options, GCC does not accept the comparison of a function's address as
      # a constant, which Abseil's containers of 2024 need (GCC bug 71962).
      target_compile_options(hvdlite_compile_options INTERFACE
        -fno-sanitize=nonnull-attribute,returns-nonnull-attribute)
      # Abseil's libraries were built without sanitizers. Unless this is defined, the
      # headers of its containers of 2024 have other members under AddressSanitizer, and
      # they poison memory that the libraries do not unpoison.
      target_compile_definitions(hvdlite_compile_options INTERFACE NDEBUG_SANITIZER)
      set(HVDLITE_TEST_ENVIRONMENT ASAN_OPTIONS=allow_user_poisoning=0)
    endif()
  endif()
  target_link_options(hvdlite_compile_options INTERFACE
    -fsanitize=${HVDLITE_SANITIZER})
endif()
if(HVDLITE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "HVDLITE_FUZZ needs clang, which contains libFuzzer: "
      "CXX=clang++ cmake --preset fuzz (Debian: apt-get install clang)")
  endif()
  target_compile_options(hvdlite_compile_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
# Use a fast linker if one is installed and the user has chosen no other.
include(CheckLinkerFlag)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_LINKER_TYPE AND NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION
    AND NOT "${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS}"
      MATCHES "-fuse-ld=|-flto")
  foreach(linker IN ITEMS mold lld)
    unset(HVDLITE_HAS_${linker} CACHE) # it may have been removed since the last run
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
# Compiles TARGET with the precompiled headers of the library HOLDER. Both must have the
# same options, so executables are compiled with -fPIC, not with -fPIE.
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
# Compiles TARGET with precompiled headers of LibTorch, for files that include most of
# LibTorch: 7 s per file instead of 16 s. Loading the headers takes 5 s, so do not use this
# for a target that needs only tensors.
function(hvdlite_precompile_torch target)
  if(NOT HVDLITE_PRECOMPILE_TORCH)
    return()
  endif()
  # tests/ has its own precompiled headers, because it has other compiler options.
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
# Does the same for the headers of unit tests, in builds with sanitizers and unity builds.
# The preset dev goes without, so that it finds a missing #include.
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
