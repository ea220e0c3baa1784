# Settings of `cpack`, which packs the installed files. It makes a .deb if LibTorch is
# Debian's, because a package can depend on that, and if the tools that find dependencies
# are installed (Debian: dpkg-dev and file). Otherwise it makes a .tar.gz.

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
# dpkg-shlibdeps finds what programs and library are linked with. The headers need
# libtorch-dev. Even one process needs Open MPI's daemon, which is in openmpi-bin.
set(launcher openmpi-bin)
if(HVDLITE_MPI MATCHES "^MPICH")
  set(launcher mpich)
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/torch_plugin)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libtorch-dev, ${launcher}")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libopenblas0-openmp, g++, cmake")
include(CPack)
