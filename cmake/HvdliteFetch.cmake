# Libraries that are missing: all named at once, or downloaded and built, statically, into
# a folder of the build (never added to this project: its targets, options and
# installation stay free of theirs).
#
#   HVDLITE_FETCH         OFF, or ON: builds what is missing, or ALL: also what is there,
#                         or the names of some that are there
#   HVDLITE_FETCH_MIRROR  folder with the archives, under any names; nothing is downloaded
#   FETCHCONTENT_SOURCE_DIR_ABSL  and so on, CMake's names: the unpacked sources of one

set(HVDLITE_FETCH OFF CACHE STRING
  "Download and build libraries: OFF, ON (those that are missing), ALL, or names")
set(HVDLITE_FETCH_MIRROR "" CACHE PATH
  "Folder with the archives of libraries that HVDLITE_FETCH builds, for machines without internet")
set(HVDLITE_FETCH_FOLDER ${PROJECT_BINARY_DIR}/libraries)

# Runs a command of the build of a library; its output ends configuring if it fails.
function(hvdlite_run_step name folder)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${folder}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  file(APPEND ${HVDLITE_FETCH_FOLDER}/${name}.log "${output}")
  if(NOT status EQUAL 0)
    string(LENGTH "${output}" length)
    set(start 0)
    if(length GREATER 3000)
      math(EXPR start "${length} - 3000")
    endif()
    string(SUBSTRING "${output}" ${start} -1 tail)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${name} ${HVDLITE_${name}_VERSION} could not be built: '${command}' \
ended with ${status}. All its output is in ${HVDLITE_FETCH_FOLDER}/${name}.log, which ends \
with\n${tail}")
  endif()
endfunction()

# Sets OUT to the path of NAME's archive, whose checksum is right.
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
archive of ${wanted}. Download it on a machine with internet and put it there, under any name.")
  endif()
  get_filename_component(suffix ${HVDLITE_${name}_URL} LAST_EXT)
  set(archive ${HVDLITE_FETCH_FOLDER}/${name}-${HVDLITE_${name}_VERSION}.tar${suffix})
  message(STATUS "Downloading ${HVDLITE_${name}_URL}")
  file(DOWNLOAD ${HVDLITE_${name}_URL} ${archive} STATUS status INACTIVITY_TIMEOUT 60)
  list(POP_FRONT status code reason)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${wanted} could not be downloaded: ${reason}. Without internet: put \
the archive into a folder and configure with -DHVDLITE_FETCH_MIRROR=FOLDER.")
  endif()
  file(SHA256 ${archive} checksum)
  if(NOT checksum STREQUAL HVDLITE_${name}_SHA256)
    message(FATAL_ERROR "What came for ${wanted} has the SHA256 ${checksum}: it is not that \
release (${archive}). Look whether a proxy answers instead; do not use it.")
  endif()
  set(${out} ${archive} PARENT_SCOPE)
endfunction()

# Builds NAME into ${HVDLITE_FETCH_FOLDER}/prefix, unless that has been done, of the same
# sources, by the same compiler with the same options: NAME.built tells of what is there.
function(hvdlite_build_library name)
  set(prefix ${HVDLITE_FETCH_FOLDER}/prefix)
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
  set(built ${HVDLITE_FETCH_FOLDER}/${name}.built)
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
  file(WRITE ${built} "")  # begun: what is there may be of another configuration
  if(NOT source)
    hvdlite_get_archive(${name} archive)
    set(unpacked ${HVDLITE_FETCH_FOLDER}/${name}-source)
    file(REMOVE_RECURSE ${unpacked})
    file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${unpacked})
    file(GLOB source ${unpacked}/*)
  endif()
  message(STATUS "Building ${name} ${HVDLITE_${name}_VERSION}")
  set(build ${HVDLITE_FETCH_FOLDER}/${name}-build)
  file(REMOVE_RECURSE ${build} ${HVDLITE_FETCH_FOLDER}/${name}.log)
  file(MAKE_DIRECTORY ${build})
  cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
  if(DEFINED ENV{CMAKE_BUILD_PARALLEL_LEVEL})
    set(jobs $ENV{CMAKE_BUILD_PARALLEL_LEVEL})
  endif()
  if(EXISTS ${source}/CMakeLists.txt)
    # By the environment: there a list is one word.
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
    # The library without its programs and manual pages.
    hvdlite_run_step(${name} ${build} make -j${jobs} "SUBDIRS=include hwloc" install)
  endif()
  file(GLOB shared ${prefix}/lib/lib*.so*)  # would not be there once installed
  file(REMOVE_RECURSE ${build} ${HVDLITE_FETCH_FOLDER}/${name}-source ${shared})
  file(WRITE ${built} "${wanted}")
endfunction()

# Sets OUT to the folders in which find_package would look and that have Protobuf's headers
# without its library: a LibTorch's, of the Protobuf that it was built with.
function(hvdlite_find_headers_alone out)
  file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" folders)
  set(found "")
  foreach(folder IN LISTS CMAKE_PREFIX_PATH folders)
    file(GLOB libraries ${folder}/lib*/libprotobuf* ${folder}/lib/*/libprotobuf*)
    if(EXISTS ${folder}/include/google/protobuf AND NOT libraries)
      list(APPEND found ${folder})
    endif()
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Sets NAME_FOUND. A macro: find_package sets variables of its caller.
macro(hvdlite_look_for name)
  if("${name}" STREQUAL "Protobuf")
    find_program(HVDLITE_PROTOC protoc)
  endif()
  if("${name}" STREQUAL "Protobuf" AND NOT HVDLITE_PROTOC)
    # Its library without its compiler: what is found of it now would stay.
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

# hvdlite_find_libraries(NAME ...): finds or builds all of them, or ends configuring with
# the names of those that are missing. A macro for the same reason.
macro(hvdlite_find_libraries)
  set(hvdlite_missing "")
  if(HVDLITE_FETCH)
    list(PREPEND CMAKE_PREFIX_PATH ${HVDLITE_FETCH_FOLDER}/prefix)
  endif()
  foreach(name IN ITEMS ${ARGN})
    if(HVDLITE_FETCH STREQUAL "ALL" OR "${name}" IN_LIST HVDLITE_FETCH OR
        (HVDLITE_FETCH AND EXISTS ${HVDLITE_FETCH_FOLDER}/${name}.built))
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
    message(FATAL_ERROR "Built in ${HVDLITE_FETCH_FOLDER}, but not found there: ${names}. \
Configure again in an empty build folder; the logs are beside it.")
  endif()
  message(FATAL_ERROR "Missing libraries: ${names}. Remedy, one of: install them (Debian: \
apt-get install${debian}; tools/setup does it. Spack: spack install${spack}); or have them \
downloaded and built, which needs no root: configure with -DHVDLITE_FETCH=ON. If they are \
installed elsewhere, add their folders to -DCMAKE_PREFIX_PATH. (docs/install.md)")
endfunction()
