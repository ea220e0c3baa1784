// The kernels that OpenBLAS should take on this machine.
#pragma once

#include <string>

namespace hvdlite::launch {

// base::BetterOpenBlasCore for the OpenBLAS `library` (a path, or a name for
// the loader), which is asked in a process of its own since it starts threads.
// Empty, too, if it is another BLAS.
std::string BetterOpenBlasCoreHere(const std::string& library);

}  // namespace hvdlite::launch
