// What a program links, all the way down: its OpenMP runtime and its BLAS.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::launch {

struct LinkedLibrary {
  std::string name;  // "libgomp.so.1"
  std::string path;  // empty where the loader finds none
};

// The lines of ldd.
std::vector<LinkedLibrary> ParseLdd(absl::string_view text);

// Runs `ldd` on the program, which asks the program's own loader: so search
// paths, LD_LIBRARY_PATH and libraries of libraries are what they will be.
// Libraries that a running program opens later are not seen. An error for what
// is no dynamic program (a script, say).
absl::StatusOr<std::vector<LinkedLibrary>> LinkedLibrariesOf(
    const std::string& program);

enum class OpenMpRuntime {
  kNone,     // none is linked
  kGnu,      // libgomp
  kLlvm,     // libomp
  kIntel,    // libiomp5
  kFujitsu,  // libfjomp
  kUnknown,  // the program could not be looked into
};

absl::string_view OpenMpRuntimeName(OpenMpRuntime runtime);
absl::StatusOr<OpenMpRuntime> ParseOpenMpRuntime(absl::string_view name);

// All that are linked, by their libraries' names; more than one is trouble.
std::vector<OpenMpRuntime> OpenMpRuntimesOf(
    const std::vector<LinkedLibrary>& libraries);

// Whether Fujitsu's large-page library (libmpg) is among them, which alone
// knows the variables XOS_MMM_L_*.
bool HasLargePageLibrary(const std::vector<LinkedLibrary>& libraries);

// A library that may be OpenBLAS: the path of libopenblas, or of libblas,
// behind which a distribution may put it; if neither is linked, the name of the
// one that a running program would open.
std::string OpenBlasCandidate(const std::vector<LinkedLibrary>& libraries);

// base::BetterOpenBlasCore for the OpenBLAS `library` (a path, or a name for
// the loader), which is asked in a process of its own since it starts threads.
// Empty, too, if it is another BLAS.
std::string BetterOpenBlasCoreHere(const std::string& library);

}  // namespace hvdlite::launch
