# What the project is built from.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(nlohmann_json REQUIRED)

if(HVDLITE_WITH_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI 3.1 REQUIRED COMPONENTS CXX)
endif()

if(HVDLITE_WITH_TORCH)
  find_package(Torch REQUIRED)
endif()

if(HVDLITE_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
