# Declares what `cmake --install` installs: the public headers, libhvdlite.so, the
# programs, and the CMake package with the target hvdlite::hvdlite. The top-level
# CMakeLists.txt includes this file after all directories.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hvdlite)

# The shared library hides the symbols of the internal static libraries.
target_link_options(hvdlite_hvdlite PRIVATE LINKER:--exclude-libs,ALL)
# The library's run path has the directories of MPI and the other libraries, because a
# program that links hvdlite does not look for them.
set_target_properties(hvdlite_hvdlite PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
# CMake leaves out paths inside the directories of the top-level project. A LibTorch may be
# there, e.g. in a virtual environment.
hvdlite_libtorch_files(libtorch_files)
list(GET libtorch_files 0 libtorch)
get_filename_component(libtorch_dir "${libtorch}" DIRECTORY)
set(own_libtorch_dir "")
foreach(own IN ITEMS ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  cmake_path(IS_PREFIX own "${libtorch_dir}" is_own)
  if(is_own)
    set(own_libtorch_dir "${libtorch_dir}")
  endif()
endforeach()
set_property(TARGET hvdlite_hvdlite APPEND PROPERTY INSTALL_RPATH ${own_libtorch_dir})
if(NOT HVDLITE_INSTALL)
  return()
endif()

install(TARGETS hvdlite_hvdlite EXPORT hvdliteTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/torch_plugin/include/
                  ${PROJECT_SOURCE_DIR}/base/config/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hvdlite RENAME copyright)
install(EXPORT hvdliteTargets NAMESPACE hvdlite:: DESTINATION ${package_dir})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/hvdliteConfig.cmake.in
  ${PROJECT_BINARY_DIR}/hvdliteConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/hvdliteConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/hvdliteConfig.cmake
  ${PROJECT_BINARY_DIR}/hvdliteConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/OneLibTorch.cmake
  DESTINATION ${package_dir})

if(NOT HVDLITE_BUILD_PROGRAMS)
  return()
endif()
# Install the programs that have been built, and their man pages. The target `programs`
# builds all of them, but no tests.
include(HvdliteManPages)
add_custom_target(programs)
foreach(line IN ITEMS
    "train_mnist: train a small network on MNIST"
    "train_resnet50: train a ResNet on images"
    "train_synthetic: measure the training speed of a model with random data"
    "train_transformer: train a transformer on proteins or text"
    "generate_cifar10: write generated images in CIFAR-10's format"
    "generate_mnist: write generated digits in MNIST's format"
    "generate_pacs: write generated images in the directories of PACS"
    "generate_pssp: write generated proteins in the format of CullPDB and CB513"
    "timeline_viewer: show where the time of a trace went"
    "hvdlite_bench: measure the operations of hvdlite and MPI"
    "hvdlite_doctor: find what makes training slow on this machine"
    "hvdliterun: start a program on many ranks"
    "scale_sim: simulate the negotiation of many ranks"
    "scaling_sweep: measure how a training scales")
  string(REGEX MATCH "^([a-z0-9_]+): (.*)$" matched "${line}")
  set(program ${CMAKE_MATCH_1})
  set(description "${CMAKE_MATCH_2}")
  if(TARGET ${program})
    add_dependencies(programs ${program})
    set_target_properties(${program} PROPERTIES
      INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${own_libtorch_dir}"
      INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
      OPTIONAL)
    hvdlite_add_man_page(${program} "${description}")
  endif()
endforeach()
