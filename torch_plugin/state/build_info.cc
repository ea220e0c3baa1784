// build_info(): what the library was built with and runs on.
#include <hvdlite/world.h>
#include <mpi.h>
#include <torch/version.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "collective/kernels/reduction_kernels.h"
#include "collective/mpi/mpi_library.h"

namespace hvdlite {
namespace {

#ifdef __clang__
constexpr char kCompiler[] = __VERSION__;  // with its name
#else
constexpr char kCompiler[] = "GCC " __VERSION__;
#endif

}  // namespace

std::string build_info() {
  const collective::VectorUnit unit = collective::ChosenVectorUnit();
  return absl::StrCat(
      "hvdlite: ", HVDLITE_VERSION, "\ncompiler: ", kCompiler,
      ", C++11 ABI: ", _GLIBCXX_USE_CXX11_ABI != 0 ? "yes" : "no",
      "\nLibTorch: ", TORCH_VERSION, "\nMPI: ", collective::MpiLibraryName(),
      ", built with version ", MPI_VERSION, ".", MPI_SUBVERSION,
      " of the standard\nUCX: ", HVDLITE_UCX_VERSION, "\nkernels: ", unit.name,
      ", ", unit.bytes, " bytes\n");
}

}  // namespace hvdlite
