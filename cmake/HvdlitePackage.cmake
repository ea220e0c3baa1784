# What `cpack` makes of what is installed: a .deb, or a .tar.gz where LibTorch is not
# Debian's, of which no package could depend, or where the tools are missing that find what
# a package depends on (Debian's packages dpkg-dev and file).

set(CPACK_PACKAGE_CONTACT "hvdlite's maintainers <root@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/package)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)

find_program(HVDLITE_DPKG_SHLIBDEPS dpkg-shlibdeps)
find_program(HVDLITE_FILE file)
get_target_property(torch_library torch_cpu LOCATION)
if(HVDLITE_DPKG_SHLIBDEPS AND HVDLITE_FILE AND torch_library MATCHES "^/usr/lib/")
  set(CPACK_GENERATOR DEB)
else()
  set(CPACK_GENERATOR TGZ)
  set(CPACK_PACKAGING_INSTALL_PREFIX "")
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
# Programs and library: what they were linked with. Headers: LibTorch's. Open MPI starts
# its daemon even for one process.
set(launcher openmpi-bin)
if(HVDLITE_MPI MATCHES "^MPICH")
  set(launcher mpich)
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/torch_plugin)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libtorch-dev, ${launcher}")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libopenblas0-openmp, g++, cmake")
include(CPack)
