# Finds the libraries that the project needs. tools/setup installs all of them on Debian.

include(CheckLibTorch)
include(HvdliteLibraries)
include(HvdliteFetch)
include(OneLibTorch)

find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "pkg-config was not found; CMake needs it to find Highway, hwloc and \
UCX. Install it (Debian: pkg-config; Spack: pkgconf), or set -DPKG_CONFIG_EXECUTABLE=/path.")
endif()
set(libraries absl Protobuf nlohmann_json ZLIB Highway Hwloc)
if(HVDLITE_BUILD_PROGRAMS)
  list(APPEND libraries CLI11)
endif()
if(HVDLITE_BUILD_PROGRAMS AND HVDLITE_WITH_TORCH)
  list(APPEND libraries JPEG PNG)
endif()
if(HVDLITE_BUILD_TESTS)
  list(APPEND libraries GTest)
endif()
hvdlite_find_libraries(${libraries})

if(HVDLITE_WITH_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  if(NOT CMAKE_CROSSCOMPILING)
    set(MPI_DETERMINE_LIBRARY_VERSION ON)
  endif()
  find_package(MPI COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    message(FATAL_ERROR "No MPI was found. Remedy, one of: install an MPI with its \
development files (Debian: libopenmpi-dev openmpi-bin, or run tools/setup; MPICH: \
libmpich-dev mpich); set -DMPI_CXX_COMPILER=/path/to/mpicxx to its compiler wrapper; \
or set -DHVDLITE_WITH_MPI=OFF -DHVDLITE_WITH_TORCH=OFF to build only the parts that \
need no MPI.")
  endif()
  if(MPI_CXX_VERSION VERSION_LESS 3.1)
    message(FATAL_ERROR "The MPI that was found (${MPI_CXX_COMPILER}) implements \
version ${MPI_CXX_VERSION} of the standard; hvdlite needs 3.1 \
(MPI_Comm_create_group, MPI_Comm_split_type). Set -DMPI_CXX_COMPILER to the compiler \
wrapper of a newer MPI.")
  endif()
  # Open MPI: "Open MPI v4.1.4, package: ..."; MPICH: a table, "MPICH Version:\t4.0.2\n..."
  string(REGEX REPLACE "[,\n].*" "" HVDLITE_MPI "${MPI_CXX_LIBRARY_VERSION_STRING}")
  string(REGEX REPLACE " Version[ \t]*:[ \t]*" " " HVDLITE_MPI "${HVDLITE_MPI}")
  message(STATUS "MPI: ${HVDLITE_MPI} (${MPI_CXX_COMPILER}), version ${MPI_CXX_VERSION} of \
the standard; to use another MPI, set -DMPI_CXX_COMPILER to its compiler wrapper")
endif()

# These variables are not cached: after UCX is installed, the next configuration finds it.
set(HVDLITE_UCX_VERSION none)
if(HVDLITE_WITH_UCX)
  pkg_check_modules(UCX QUIET IMPORTED_TARGET ucx>=1.11)
  if(UCX_FOUND)
    set(HVDLITE_UCX_VERSION ${UCX_VERSION})
    message(STATUS "UCX ${UCX_VERSION}: control messages between hosts can use it")
  else()
    set(HVDLITE_WITH_UCX OFF)
    message(STATUS "UCX 1.11 or later was not found: control messages between \
hosts will use MPI, which must be polled. To use UCX, install it with \
its development files and pkg-config (Debian: libucx-dev pkg-config, or run \
tools/setup), or add the directory of its ucx.pc to PKG_CONFIG_PATH. \
-DHVDLITE_WITH_UCX=OFF disables this message.")
  endif()
endif()

if(HVDLITE_WITH_TORCH)
  if(NOT HVDLITE_WITH_MPI)
    message(FATAL_ERROR "HVDLITE_WITH_TORCH=ON needs HVDLITE_WITH_MPI=ON, because the \
plugin initializes MPI.")
  endif()
  # A project that includes this one links hvdlite::hvdlite and therefore these targets.
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
  hvdlite_find_libtorch()
  unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
  if(NOT Torch_FOUND)
    message(FATAL_ERROR "LibTorch was not found. Remedy, one of: install it (Debian: \
libtorch-dev, or run tools/setup); unpack a cxx11-ABI release of LibTorch \
1.13 or later and set -DCMAKE_PREFIX_PATH=/path/to/libtorch; set -DCMAKE_PREFIX_PATH to a \
Python virtual environment that has the package torch; or set -DHVDLITE_WITH_TORCH=OFF \
to build only the parts that need no LibTorch.")
  endif()
  hvdlite_check_libtorch()
  if(Torch_VERSION VERSION_LESS 2 AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # LibTorch 1.13's headers use vectors of a class before they define it. Clang accepts
    # that in C++17 only, so the header with the definition is included first.
    set_property(TARGET torch APPEND PROPERTY
      INTERFACE_COMPILE_OPTIONS "SHELL:-include ATen/core/ivalue.h")
  endif()
endif()
