# Functions that declare tests. Labels: unit (no MPI, no LibTorch), mpi, torch, e2e.
# Tests in an emulator (cmake/aarch64.cmake) get more time.
if(CMAKE_CROSSCOMPILING)
  set(HVDLITE_TIMEOUT_FACTOR 6)
else()
  set(HVDLITE_TIMEOUT_FACTOR 1)
endif()

# hvdlite_add_test(NAME SOURCES a_test.cc ... [DEPENDS target ...]
#                  [LABEL unit|torch] [TIMEOUT seconds])
# Declares a GoogleTest program NAME. ctest runs it as one test NAME; with sanitizers the
# test is called NAME_asan or NAME_tsan.
function(hvdlite_add_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${HVDLITE_TIMEOUT_FACTOR}")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE
    hvdlite_compile_options ${arg_DEPENDS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(NOT arg_LABEL STREQUAL "torch")
    hvdlite_precompile_gmock(${name})
  endif()
  set(test ${name})
  if(HVDLITE_SANITIZER MATCHES "^(.)")
    set(test ${name}_${CMAKE_MATCH_1}san)
  endif()
  add_test(NAME ${test} COMMAND ${name})
  set_tests_properties(${test} PROPERTIES
    LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${HVDLITE_TEST_ENVIRONMENT}")
endfunction()

# hvdlite_golden_texts(TEST FILE)
# FILE contains the texts that ExpectGolden() (tests/testing/golden.h) expects in TEST.
function(hvdlite_golden_texts test file)
  target_sources(${test} PRIVATE ${PROJECT_SOURCE_DIR}/tests/testing/golden.cc)
  target_compile_definitions(${test} PRIVATE
    HVDLITE_GOLDEN_FILE="${CMAKE_CURRENT_SOURCE_DIR}/${file}")
endfunction()

# Sets VARIABLE to the number of processors that ctest reserves for a test with RANKS
# ranks (0: without mpirun). While a test with one rank runs, another test can run.
function(hvdlite_processors ranks variable)
  if(ranks GREATER 1)
    set(${variable} 2 PARENT_SCOPE)
  else()
    set(${variable} 1 PARENT_SCOPE)
  endif()
endfunction()

# hvdlite_add_mpi_test(TARGET RANKS 1 2 4 [LABEL mpi|torch|e2e]
#                      [TIMEOUT seconds] [ARGS arg ...])
# Declares tests that run TARGET, an executable, under mpirun: one per number of ranks.
function(hvdlite_add_mpi_test target)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "RANKS;ARGS" ${ARGN})
  if(NOT arg_LABEL)
    set(arg_LABEL mpi)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 180)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${HVDLITE_TIMEOUT_FACTOR}")
  foreach(ranks IN LISTS arg_RANKS)
    set(test ${target}_np${ranks})
    hvdlite_processors(${ranks} processors)
    add_test(NAME ${test}
      COMMAND ${PROJECT_SOURCE_DIR}/tests/testing/mpirun ${ranks}
              ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${target}> ${arg_ARGS})
    set_tests_properties(${test} PROPERTIES
      LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} PROCESSORS ${processors})
  endforeach()
endfunction()

# hvdlite_add_testbed_test(TARGET HOSTS 2 [SLOTS 2,1] [LABEL mpi|torch|e2e]
#                          [TIMEOUT seconds] [ARGS arg ...])
# Declares a test TARGET_hosts2_slots2_1 that runs TARGET, an executable, on simulated
# hosts (dev/testbed), with SLOTS ranks on each (one number for all hosts, or a list; 1 by
# default). ctest skips it if the machine does not allow namespaces.
function(hvdlite_add_testbed_test target)
  cmake_parse_arguments(arg "" "HOSTS;SLOTS;LABEL;TIMEOUT" "ARGS" ${ARGN})
  if(NOT arg_SLOTS)
    set(arg_SLOTS 1)
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL mpi)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 180)
  endif()
  string(REPLACE "," "_" slots ${arg_SLOTS})
  set(test ${target}_hosts${arg_HOSTS}_slots${slots})
  add_test(NAME ${test}
    COMMAND ${PROJECT_SOURCE_DIR}/dev/testbed
            ${arg_HOSTS} --slots ${arg_SLOTS} --
            $<TARGET_FILE:${target}> ${arg_ARGS})
  set_tests_properties(${test} PROPERTIES
    LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} PROCESSORS 2
    SKIP_RETURN_CODE 77)
endfunction()
