# Finds all libraries of LibTorch in one directory, even if several LibTorchs are installed.
# TorchConfig.cmake looks for some of them in the system's directories first. If a process
# loads two, both manage the same memory, and it ends with "double free or corruption".
# This file is also part of the installed package.

# CMake must use Torch_ROOT, also in projects that have older policies.
cmake_policy(SET CMP0074 NEW)

# Sets OUT to the prefix of the package whose CMake files are in DIRECTORY, e.g. /usr for
# /usr/lib/x86_64-linux-gnu/cmake/Torch.
function(hvdlite_prefix_of out directory)
  foreach(place IN ITEMS "share/cmake/" "lib[^/]*/cmake/" "lib[^/]*/[^/]+/cmake/" "")
    if(directory MATCHES "^(.*)/${place}[^/]+/?$")
      set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# Sets OUT to the directories of the Python package torch, in virtual environments and of
# Python3_EXECUTABLE. CMake does not find the LibTorch there by itself.
function(hvdlite_python_torches out)
  string(REPLACE ":" ";" prefixes "$ENV{CMAKE_PREFIX_PATH}")
  set(torches "")
  foreach(prefix IN LISTS CMAKE_PREFIX_PATH prefixes)
    file(GLOB found "${prefix}/lib*/python3*/site-packages/torch")
    list(APPEND torches ${found})
  endforeach()
  foreach(python IN ITEMS "${Python3_EXECUTABLE}" "${Python_EXECUTABLE}")
    if(python)
      execute_process(COMMAND ${python} -c
        "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
        OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      list(APPEND torches ${found})
    endif()
  endforeach()
  if(DEFINED ENV{VIRTUAL_ENV})
    file(GLOB found "$ENV{VIRTUAL_ENV}/lib*/python3*/site-packages/torch")
    list(APPEND torches ${found})
  endif()
  set(${out} "${torches}" PARENT_SCOPE)
endfunction()

# Sets OUT to the prefix of the LibTorch that find_package(Torch) finds with HINTS. The
# packages of Python have the lowest priority.
function(hvdlite_choose_libtorch out)
  hvdlite_python_torches(torches)
  # No LibTorch has this version, so CMake only lists what it finds and loads none.
  find_package(Torch 99999 CONFIG QUIET HINTS ${ARGN} ${torches})
  unset(Torch_DIR CACHE)
  set(prefix "")
  if(Torch_CONSIDERED_CONFIGS)
    list(GET Torch_CONSIDERED_CONFIGS 0 config)
    get_filename_component(directory "${config}" DIRECTORY)
    set(Torch_DIR "${directory}" CACHE PATH "The directory with LibTorch's TorchConfig.cmake")
    hvdlite_prefix_of(prefix "${directory}")
  endif()
  set(${out} "${prefix}" PARENT_SCOPE)
endfunction()

# hvdlite_find_libtorch([HINT ...])
# Like find_package(Torch QUIET HINTS HINT ...), but also finds the LibTorch of a Python
# package, and takes all libraries from one directory. If the project has found a LibTorch
# before, that one is kept; hvdlite_diagnose_mixture checks it.
macro(hvdlite_find_libtorch)
  if(NOT TARGET torch)
    # An earlier run may have found the libraries of another LibTorch.
    foreach(found IN ITEMS Caffe2_DIR TORCH_LIBRARY c10_LIBRARY kineto_LIBRARY)
      unset(${found} CACHE)
    endforeach()
    hvdlite_choose_libtorch(Torch_ROOT ${ARGN})
  endif()
  find_package(Torch QUIET)
endmacro()

# Sets OUT to the libraries of LibTorch that are linked. The first is libtorch_cpu.
function(hvdlite_libtorch_files out)
  set(files "")
  foreach(target IN ITEMS torch_cpu torch c10)
    if(TARGET ${target})
      get_target_property(file ${target} LOCATION)
      list(APPEND files "${file}")
    endif()
  endforeach()
  set(linked ${TORCH_LIBRARIES})
  list(FILTER linked INCLUDE REGEX "^/(.*/)?lib(c10|torch|caffe2|kineto)[^/]*$")
  set(${out} ${files} ${linked} PARENT_SCOPE)
endfunction()

# hvdlite_diagnose_mixture(OUT FILES file ... TORCH_DIR directory [CAFFE2_DIR directory])
# Sets OUT to an error message with a remedy if FILES (hvdlite_libtorch_files), or the two
# parts of LibTorch's CMake package, belong to two LibTorchs; otherwise to nothing.
function(hvdlite_diagnose_mixture out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TORCH_DIR;CAFFE2_DIR" "FILES")
  hvdlite_prefix_of(prefix "${arg_TORCH_DIR}")
  set(mixture "")
  # The parts in a list belong to one LibTorch if they are in the same directory.
  set(configurations ${arg_TORCH_DIR} ${arg_CAFFE2_DIR})
  foreach(list IN ITEMS arg_FILES configurations)
    set(first "")
    foreach(part IN LISTS ${list})
      get_filename_component(directory "${part}" REALPATH)
      get_filename_component(directory "${directory}" DIRECTORY)
      if(NOT first)
        set(first "${directory}")
        set(witness "${part}")
      elseif(NOT mixture AND NOT directory STREQUAL first)
        set(mixture "Two LibTorchs are mixed: ${witness} belongs to one and ${part} to another, \
and a process with both ends with 'double free or corruption'. Remedy: configure a clean build \
directory with -DCMAKE_PREFIX_PATH=${prefix} (or the prefix of the other one), and call \
find_package(hvdlite) before find_package(Torch).")
      endif()
    endforeach()
  endforeach()
  set(${out} "${mixture}" PARENT_SCOPE)
endfunction()
