# What the project is built from. tools/setup installs all of it on Debian.

include(CheckLibTorch)
include(HvdliteLibraries)
include(HvdliteFetch)
include(OneLibTorch)

find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "pkg-config was not found: it finds Highway, hwloc and UCX. Install \
it (Debian: pkg-config; Spack: pkgconf), or name it with -DPKG_CONFIG_EXECUTABLE=/path.")
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
    message(FATAL_ERROR "No MPI was found. Install one with its development \
files (Debian: libopenmpi-dev openmpi-bin, or run tools/setup; MPICH: \
libmpich-dev mpich), name its \
compiler wrapper with -DMPI_CXX_COMPILER=/path/to/mpicxx, or configure with \
-DHVDLITE_WITH_MPI=OFF -DHVDLITE_WITH_TORCH=OFF to build the parts that need \
no MPI.")
  endif()
  if(MPI_CXX_VERSION VERSION_LESS 3.1)
    message(FATAL_ERROR "The MPI that was found (${MPI_CXX_COMPILER}) implements \
version ${MPI_CXX_VERSION} of the standard; hvdlite needs 3.1 \
(MPI_Comm_create_group, MPI_Comm_split_type). Point -DMPI_CXX_COMPILER at the \
wrapper of a newer one.")
  endif()
  # "Open MPI v4.1.4, package: ..."; of MPICH a table, "MPICH Version:\t4.0.2\n..."
  string(REGEX REPLACE "[,\n].*" "" HVDLITE_MPI "${MPI_CXX_LIBRARY_VERSION_STRING}")
  string(REGEX REPLACE " Version[ \t]*:[ \t]*" " " HVDLITE_MPI "${HVDLITE_MPI}")
  message(STATUS "MPI: ${HVDLITE_MPI} (${MPI_CXX_COMPILER}), version ${MPI_CXX_VERSION} of \
the standard; -DMPI_CXX_COMPILER names the wrapper of another one")
endif()

# For this run only: once UCX is installed, configuring again finds it.
set(HVDLITE_UCX_VERSION none)
if(HVDLITE_WITH_UCX)
  pkg_check_modules(UCX QUIET IMPORTED_TARGET ucx>=1.11)
  if(UCX_FOUND)
    set(HVDLITE_UCX_VERSION ${UCX_VERSION})
    message(STATUS "UCX ${UCX_VERSION}: control messages can go over it")
  else()
    set(HVDLITE_WITH_UCX OFF)
    message(STATUS "No UCX 1.11 or later was found: control messages between \
hosts will go over MPI, which has to be polled. To change that, install UCX with \
its development files and pkg-config (Debian: libucx-dev pkg-config, or run \
tools/setup), or add the folder of its ucx.pc to PKG_CONFIG_PATH. \
-DHVDLITE_WITH_UCX=OFF leaves this message out.")
  endif()
endif()

if(HVDLITE_WITH_TORCH)
  if(NOT HVDLITE_WITH_MPI)
    message(FATAL_ERROR "HVDLITE_WITH_TORCH=ON needs HVDLITE_WITH_MPI=ON: the \
plugin starts MPI.")
  endif()
  # A project around this one links hvdlite::hvdlite, and so these targets, too.
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
  hvdlite_find_libtorch()
  unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
  if(NOT Torch_FOUND)
    message(FATAL_ERROR "LibTorch was not found. Install it (Debian: \
libtorch-dev, or run tools/setup), or unpack a cxx11-ABI release of LibTorch \
1.13 or later and configure with -DCMAKE_PREFIX_PATH=/path/to/libtorch, or with that of a \
virtual environment of Python's that has the package torch. \
-DHVDLITE_WITH_TORCH=OFF builds the parts that need no LibTorch.")
  endif()
  hvdlite_check_libtorch()
  if(Torch_VERSION VERSION_LESS 2 AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # In the order of its own headers, 1.13 has vectors of a class that is not there
    # yet, which Clang takes in C++17 only.
    set_property(TARGET torch APPEND PROPERTY
      INTERFACE_COMPILE_OPTIONS "SHELL:-include ATen/core/ivalue.h")
  endif()
endif()
