# The libraries that hvdlite needs, with the archives that HVDLITE_FETCH downloads and
# builds (cmake/HvdliteFetch.cmake). To add a library or to take a newer release, change
# its row. Compare the checksum of the download with one that others publish (Spack,
# Homebrew).
#
# hvdlite_library(NAME TARGET target PACKAGES "Debian's" "Spack's" VERSION version URL url
#   SHA256 checksum [PKG_CONFIG module] [OPTIONS option ...])
#   NAME        find_package looks for this name; with PKG_CONFIG, pkg-config looks for module
#   TARGET      if this target exists, a project that includes this one provides the library
#   OPTIONS     options of its CMakeLists.txt or, if it has none, of its configure script
macro(hvdlite_library name)
  cmake_parse_arguments(HVDLITE_${name} "" "TARGET;VERSION;URL;SHA256;PKG_CONFIG"
    "PACKAGES;OPTIONS" ${ARGN})
  list(APPEND HVDLITE_LIBRARIES ${name})
endmacro()

set(HVDLITE_LIBRARIES "")
hvdlite_library(absl TARGET absl::strings
  PACKAGES libabsl-dev "abseil-cpp cxxstd=20" VERSION 20240722.0
  URL https://github.com/abseil/abseil-cpp/archive/refs/tags/20240722.0.tar.gz
  SHA256 f50e5ac311a81382da7fa75b97310e4b9006474f9560ac46f54a9967f07d4ae3
  OPTIONS -DABSL_PROPAGATE_CXX_STD=ON)
# This is the last release that does not need Abseil.
hvdlite_library(Protobuf TARGET protobuf::libprotobuf
  PACKAGES "libprotobuf-dev protobuf-compiler" protobuf@3.21,21 VERSION 3.21.12
  URL https://github.com/protocolbuffers/protobuf/archive/refs/tags/v3.21.12.tar.gz
  SHA256 930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53
  OPTIONS -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_WITH_ZLIB=OFF)
hvdlite_library(nlohmann_json TARGET nlohmann_json::nlohmann_json
  PACKAGES nlohmann-json3-dev nlohmann-json VERSION 3.11.3
  URL https://github.com/nlohmann/json/archive/refs/tags/v3.11.3.tar.gz
  SHA256 0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406
  OPTIONS -DJSON_BuildTests=OFF)
hvdlite_library(CLI11 TARGET CLI11::CLI11
  PACKAGES libcli11-dev cli11 VERSION 2.4.1
  URL https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.1.tar.gz
  SHA256 73b7ec52261ce8fe980a29df6b4ceb66243bb0b779451dbd3d014cfec9fdbb58
  OPTIONS -DCLI11_BUILD_TESTS=OFF -DCLI11_BUILD_EXAMPLES=OFF -DCLI11_BUILD_DOCS=OFF)
hvdlite_library(ZLIB TARGET ZLIB::ZLIB
  PACKAGES zlib1g-dev zlib VERSION 1.3.1
  URL https://github.com/madler/zlib/archive/refs/tags/v1.3.1.tar.gz
  SHA256 17e88863f3600672ab49182f217281b6fc4d3c762bde361935e436a95214d05c
  OPTIONS -DZLIB_BUILD_EXAMPLES=OFF)
hvdlite_library(Highway TARGET PkgConfig::Highway PKG_CONFIG libhwy
  PACKAGES libhwy-dev highway VERSION 1.2.0
  URL https://github.com/google/highway/archive/refs/tags/1.2.0.tar.gz
  SHA256 7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343
  OPTIONS -DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF)
# The symbols get a prefix, because MPI may load another version of hwloc.
hvdlite_library(Hwloc TARGET PkgConfig::Hwloc PKG_CONFIG hwloc
  PACKAGES libhwloc-dev hwloc VERSION 2.12.0
  URL https://download.open-mpi.org/release/hwloc/v2.12/hwloc-2.12.0.tar.bz2
  SHA256 06a0a2bdc0a5714e839164683846a0e936a896213758e9d37e49e232b89c58d4
  OPTIONS --enable-static --disable-shared --with-pic
    --with-hwloc-symbol-prefix=hvdlite_hwloc_ --disable-io --disable-libxml2
    --disable-cairo --disable-plugins --disable-doxygen --disable-readme)
hvdlite_library(JPEG TARGET JPEG::JPEG
  PACKAGES libjpeg-dev libjpeg-turbo VERSION 2.1.5
  URL https://github.com/libjpeg-turbo/libjpeg-turbo/archive/refs/tags/2.1.5.tar.gz
  SHA256 254f3642b04e309fee775123133c6464181addc150499561020312ec61c1bf7c
  OPTIONS -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF)
hvdlite_library(PNG TARGET PNG::PNG
  PACKAGES libpng-dev libpng VERSION 1.6.58
  URL https://github.com/pnggroup/libpng/archive/refs/tags/v1.6.58.tar.gz
  SHA256 a9d4df463d36a6e5f9c29bd6f4967312d17e996c1854f3511f833924eb1993cf
  OPTIONS -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_TOOLS=OFF)
hvdlite_library(GTest TARGET GTest::gmock
  PACKAGES "libgtest-dev libgmock-dev" googletest VERSION 1.12.1
  URL https://github.com/google/googletest/archive/refs/tags/release-1.12.1.tar.gz
  SHA256 81964fe578e9bd7c94dfdb09c8e4d6e6759e19967e397dbea48d1c10e45d0df2)
