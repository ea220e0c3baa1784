# Toolchain file: builds for aarch64 on another machine, with Debian's cross
# compiler and a sysroot, and lets ctest run the tests in qemu's user mode.
# dev/check_a64fx makes the sysroot and uses this file.
#
#   HVDLITE_SYSROOT  folder of an arm64 Debian with the libraries of the project
#
# The environment variable QEMU_CPU chooses the CPU when the tests are run.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HVDLITE_SYSROOT)
if(NOT IS_DIRECTORY "${HVDLITE_SYSROOT}")
  message(FATAL_ERROR "Name the sysroot with -DHVDLITE_SYSROOT=/path (now \
'${HVDLITE_SYSROOT}'); dev/check_a64fx makes one.")
endif()
set(CMAKE_SYSROOT ${HVDLITE_SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${HVDLITE_SYSROOT})

# Programs (protoc) are those of this machine; everything else is the sysroot's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_PATH} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${HVDLITE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${HVDLITE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${HVDLITE_SYSROOT}/usr/share/pkgconfig)

# Without a compiler wrapper, FindMPI needs to be told. (The name is that which
# Debian's alternatives would give it.)
set(MPI_CXX_COMPILER NOTFOUND CACHE FILEPATH "none for aarch64")
set(MPI_CXX_HEADER_DIR
  ${HVDLITE_SYSROOT}/usr/lib/aarch64-linux-gnu/openmpi/include CACHE PATH "")
set(MPI_CXX_LIB_NAMES mpi CACHE STRING "")
set(MPI_mpi_LIBRARY
  ${HVDLITE_SYSROOT}/usr/lib/aarch64-linux-gnu/openmpi/lib/libmpi.so
  CACHE FILEPATH "")
