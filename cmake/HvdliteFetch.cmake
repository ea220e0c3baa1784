# Reports all missing libraries at once, or downloads and builds them as static libraries
# in a directory of the build. They are not part of this project: it does not have their
# targets and options, and does not install them.
#
#   HVDLITE_FETCH         OFF; ON: build missing libraries; ALL: build all libraries;
#                         or the names of libraries that are built although installed
#   HVDLITE_FETCH_MIRROR  directory with the archives, with any names; disables downloads
#   FETCHCONTENT_SOURCE_DIR_ABSL and others (CMake's names): the unpacked sources of a library

set(HVDLITE_FETCH OFF CACHE STRING
  "Download and build libraries: OFF, ON (missing ones), ALL, or their names")
set(HVDLITE_FETCH_MIRROR "" CACHE PATH
  "Directory with the archives of the libraries that HVDLITE_FETCH builds, for machines without internet")
set(HVDLITE_FETCH_DIRECTORY ${PROJECT_BINARY_DIR}/libraries)

# Runs a command of a library's build. If it fails, the configuration ends with its output.
function(hvdlite_run_step name directory)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${directory}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  file(APPEND ${HVDLITE_FETCH_DIRECTORY}/${name}.log "${output}")
  if(NOT status EQUAL 0)
    string(LENGTH "${output}" length)
    set(start 0)
    if(length GREATER 3000)
      math(EXPR start "${length} - 3000")
    endif()
    string(SUBSTRING "${output}" ${start} -1 tail)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${name} ${HVDLITE_${name}_VERSION} could not be built: '${command}' \
failed with status ${status}. The whole output is in ${HVDLITE_FETCH_DIRECTORY}/${name}.log; \
it ends with:\n${tail}")
  endif()
endfunction()

# Sets OUT to the path of NAME's archive after verifying its checksum.
function(hvdlite_get_archive name out)
  set(wanted "${name} ${HVDLITE_${name}_VERSION} (${HVDLITE_${name}_URL}, SHA256 \
${HVDLITE_${name}_SHA256})")
  if(HVDLITE_FETCH_MIRROR)
    file(GLOB files LIST_DIRECTORIES FALSE ${HVDLITE_FETCH_MIRROR}/*)
    foreach(file IN LISTS files)
      file(SHA256 ${file} checksum)
      if(checksum STREQUAL HVDLITE_${name}_SHA256)
        set(${out} ${file} PARENT_SCOPE)
        return()
      endif()
    endforeach()
    message(FATAL_ERROR "No file in ${HVDLITE_FETCH_MIRROR} (HVDLITE_FETCH_MIRROR) is the \
archive of ${wanted}. Download it on a machine with internet and copy it there, with any name.")
  endif()
  get_filename_component(suffix ${HVDLITE_${name}_URL} LAST_EXT)
  set(archive ${HVDLITE_FETCH_DIRECTORY}/${name}-${HVDLITE_${name}_VERSION}.tar${suffix})
  message(STATUS "Downloading ${HVDLITE_${name}_URL}")
  file(DOWNLOAD ${HVDLITE_${name}_URL} ${archive} STATUS status INACTIVITY_TIMEOUT 60)
  list(POP_FRONT status code reason)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${wanted} could not be downloaded: ${reason}. Without internet, put \
the archive into a directory and configure with -DHVDLITE_FETCH_MIRROR=DIRECTORY.")
  endif()
  file(SHA256 ${archive} checksum)
  if(NOT checksum STREQUAL HVDLITE_${name}_SHA256)
    message(FATAL_ERROR "The download of ${wanted} has the SHA256 ${checksum}: it is not that \
release (${archive}). Do not use it. Check whether a proxy has sent another file.")
  endif()
  set(${out} ${archive} PARENT_SCOPE)
endfunction()

# Builds NAME into ${HVDLITE_FETCH_DIRECTORY}/prefix, unless it is there and was built from the
# same sources, by the same compiler with the same options. NAME.built records all that.
function(hvdlite_build_library name)
  set(prefix ${HVDLITE_FETCH_DIRECTORY}/prefix)
  string(TOUPPER ${name} upper)
  set(source "${FETCHCONTENT_SOURCE_DIR_${upper}}")
  set(options -DCMAKE_CXX_STANDARD=20 -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF
    -DCMAKE_INSTALL_PREFIX=${prefix} -DCMAKE_INSTALL_LIBDIR=lib
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5)
  foreach(variable IN ITEMS CMAKE_C_COMPILER CMAKE_C_FLAGS CMAKE_CXX_COMPILER
      CMAKE_CXX_FLAGS CMAKE_TOOLCHAIN_FILE)
    if(${variable})
      list(APPEND options "-D${variable}=${${variable}}")
    endif()
  endforeach()
  set(built ${HVDLITE_FETCH_DIRECTORY}/${name}.built)
  list(JOIN options "\n" wanted)
  string(APPEND wanted "\n${HVDLITE_${name}_OPTIONS}\n${HVDLITE_${name}_SHA256}\n${source}\n\
${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\n")
  set(present "")
  if(EXISTS ${built})
    file(READ ${built} present)
  endif()
  if(present STREQUAL wanted)
    return()
  endif()
  file(WRITE ${built} "")  # until the build ends, the prefix may hold a mixture
  if(NOT source)
    hvdlite_get_archive(${name} archive)
    set(unpacked ${HVDLITE_FETCH_DIRECTORY}/${name}-source)
    file(REMOVE_RECURSE ${unpacked})
    file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${unpacked})
    file(GLOB source ${unpacked}/*)
  endif()
  message(STATUS "Building ${name} ${HVDLITE_${name}_VERSION}")
  set(build ${HVDLITE_FETCH_DIRECTORY}/${name}-build)
  file(REMOVE_RECURSE ${build} ${HVDLITE_FETCH_DIRECTORY}/${name}.log)
  file(MAKE_DIRECTORY ${build})
  cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
  if(DEFINED ENV{CMAKE_BUILD_PARALLEL_LEVEL})
    set(jobs $ENV{CMAKE_BUILD_PARALLEL_LEVEL})
  endif()
  if(EXISTS ${source}/CMakeLists.txt)
    # The environment variable holds the list as one word.
    string(REPLACE ";" ":" prefixes "${prefix};${CMAKE_PREFIX_PATH}")
    if(CMAKE_MAKE_PROGRAM)
      list(APPEND options -DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM})
    endif()
    if(HVDLITE_CCACHE)
      list(APPEND options -DCMAKE_C_COMPILER_LAUNCHER=${HVDLITE_CCACHE}
        -DCMAKE_CXX_COMPILER_LAUNCHER=${HVDLITE_CCACHE})
    endif()
    hvdlite_run_step(${name} ${build} ${CMAKE_COMMAND} -E env
      CMAKE_PREFIX_PATH=${prefixes} ${CMAKE_COMMAND} -G ${CMAKE_GENERATOR}
      -S ${source} -B ${build} ${options} ${HVDLITE_${name}_OPTIONS})
    hvdlite_run_step(${name} ${build} ${CMAKE_COMMAND} --build ${build} --parallel ${jobs}
      --target install)
  else()
    set(variables "")
    if(CMAKE_C_COMPILER)
      list(APPEND variables CC=${CMAKE_C_COMPILER})
    endif()
    if(CMAKE_C_FLAGS)
      list(APPEND variables "CFLAGS=-O2 ${CMAKE_C_FLAGS}")
    endif()
    hvdlite_run_step(${name} ${build} ${source}/configure --prefix=${prefix}
      --libdir=${prefix}/lib ${HVDLITE_${name}_OPTIONS} ${variables})
    # This installs the library without its programs and manual pages.
    hvdlite_run_step(${name} ${build} make -j${jobs} "SUBDIRS=include hwloc" install)
  endif()
  file(GLOB shared ${prefix}/lib/lib*.so*)  # installed programs would not find them
  file(REMOVE_RECURSE ${build} ${HVDLITE_FETCH_DIRECTORY}/${name}-source ${shared})
  file(WRITE ${built} "${wanted}")
endfunction()

# Sets OUT to the prefixes that have Protobuf's headers without its library. For example, a
# LibTorch has the headers of the Protobuf that it was built with.
function(hvdlite_find_headers_alone out)
  file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" directories)
  set(found "")
  foreach(directory IN LISTS CMAKE_PREFIX_PATH directories)
    file(GLOB libraries ${directory}/lib*/libprotobuf* ${directory}/lib/*/libprotobuf*)
    if(EXISTS ${directory}/include/google/protobuf AND NOT libraries)
      list(APPEND found ${directory})
    endif()
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Looks for library NAME and sets NAME_FOUND. It is a macro, because find_package sets
# variables in its caller's scope.
macro(hvdlite_look_for name)
  if("${name}" STREQUAL "Protobuf")
    find_program(HVDLITE_PROTOC protoc)
  endif()
  if("${name}" STREQUAL "Protobuf" AND NOT HVDLITE_PROTOC)
    # Without protoc the library is useless, and CMake would keep its location.
    set(Protobuf_FOUND FALSE)
  elseif(TARGET ${HVDLITE_${name}_TARGET})
    set(${name}_FOUND TRUE)
  elseif(HVDLITE_${name}_PKG_CONFIG)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET ${HVDLITE_${name}_PKG_CONFIG})
  elseif("${name}" STREQUAL "Protobuf")
    set(hvdlite_ignored "${CMAKE_IGNORE_PREFIX_PATH}")
    hvdlite_find_headers_alone(hvdlite_headers_alone)
    list(APPEND CMAKE_IGNORE_PREFIX_PATH ${hvdlite_headers_alone})
    find_package(Protobuf QUIET)
    set(CMAKE_IGNORE_PREFIX_PATH "${hvdlite_ignored}")
  else()
    find_package(${name} QUIET)
  endif()
endmacro()

# hvdlite_find_libraries(NAME ...): finds or builds the libraries, or ends the configuration
# with the names of the missing ones. It is a macro for the same reason.
macro(hvdlite_find_libraries)
  set(hvdlite_missing "")
  if(HVDLITE_FETCH)
    list(PREPEND CMAKE_PREFIX_PATH ${HVDLITE_FETCH_DIRECTORY}/prefix)
  endif()
  foreach(name IN ITEMS ${ARGN})
    if(HVDLITE_FETCH STREQUAL "ALL" OR "${name}" IN_LIST HVDLITE_FETCH OR
        (HVDLITE_FETCH AND EXISTS ${HVDLITE_FETCH_DIRECTORY}/${name}.built))
      hvdlite_build_library(${name})
    endif()
    hvdlite_look_for(${name})
    if(NOT ${name}_FOUND AND HVDLITE_FETCH)
      hvdlite_build_library(${name})
      hvdlite_look_for(${name})
    endif()
    if(NOT ${name}_FOUND)
      list(APPEND hvdlite_missing ${name})
    endif()
  endforeach()
  hvdlite_tell_missing(${hvdlite_missing})
endmacro()

function(hvdlite_tell_missing)
  if(NOT ARGN)
    return()
  endif()
  set(debian "")
  set(spack "")
  foreach(name IN LISTS ARGN)
    list(GET HVDLITE_${name}_PACKAGES 0 package)
    string(APPEND debian " ${package}")
    list(GET HVDLITE_${name}_PACKAGES 1 package)
    string(APPEND spack " ${package}")
  endforeach()
  list(JOIN ARGN ", " names)
  if(HVDLITE_FETCH)
    message(FATAL_ERROR "These libraries were built in ${HVDLITE_FETCH_DIRECTORY}, but CMake does \
not find them there: ${names}. Configure again in an empty build directory. The logs are in \
${HVDLITE_FETCH_DIRECTORY}.")
  endif()
  message(FATAL_ERROR "Missing libraries: ${names}. Remedy, one of: install them (Debian: \
apt-get install${debian}, or run tools/setup. Spack: spack install${spack}); let CMake \
download and build them, which needs no root: set -DHVDLITE_FETCH=ON; or, if they are \
installed elsewhere, add their prefixes to -DCMAKE_PREFIX_PATH. (docs/install.md)")
endfunction()
