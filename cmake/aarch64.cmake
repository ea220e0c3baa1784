# Toolchain file that builds for aarch64 on another machine, with Debian's cross
# compiler and a sysroot. ctest runs the tests in qemu's user mode.
# dev/check_a64fx makes the sysroot and uses this file.
#
#   HVDLITE_SYSROOT  directory of an arm64 Debian with the libraries of the project
#
# The environment variable QEMU_CPU selects the CPU of the tests.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HVDLITE_SYSROOT)
if(NOT IS_DIRECTORY "${HVDLITE_SYSROOT}")
  message(FATAL_ERROR "HVDLITE_SYSROOT is not a directory: '${HVDLITE_SYSROOT}'. Set it with \
-DHVDLITE_SYSROOT=/path; dev/check_a64fx makes a sysroot.")
endif()
set(CMAKE_SYSROOT ${HVDLITE_SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${HVDLITE_SYSROOT})

# Programs (protoc) are taken from this machine, everything else from the sysroot.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_PATH} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${HVDLITE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${HVDLITE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${HVDLITE_SYSROOT}/usr/share/pkgconfig)

# There is no compiler wrapper, so FindMPI needs these settings. (The paths are those that
# Debian's alternatives system would choose.)
set(MPI_CXX_COMPILER NOTFOUND CACHE FILEPATH "none for aarch64")
set(MPI_CXX_HEADER_DIR
  ${HVDLITE_SYSROOT}/usr/lib/aarch64-linux-gnu/openmpi/include CACHE PATH "")
set(MPI_CXX_LIB_NAMES mpi CACHE STRING "")
set(MPI_mpi_LIBRARY
  ${HVDLITE_SYSROOT}/usr/lib/aarch64-linux-gnu/openmpi/lib/libmpi.so
  CACHE FILEPATH "")
