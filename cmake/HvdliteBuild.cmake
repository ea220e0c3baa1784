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
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HVDLITE_CCACHE})
endif()

# Warnings and sanitizers, for the project's own targets only.
add_library(hvdlite_compile_options INTERFACE)
target_compile_options(hvdlite_compile_options INTERFACE
  -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${HVDLITE_WERROR}>:-Werror>)
if(HVDLITE_SANITIZER)
  target_compile_options(hvdlite_compile_options INTERFACE
    -fsanitize=${HVDLITE_SANITIZER} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(hvdlite_compile_options INTERFACE
    -fsanitize=${HVDLITE_SANITIZER})
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
