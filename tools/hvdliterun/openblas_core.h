// Whether OpenBLAS falls back to kernels of an ancient processor on this one.
//
// It chooses its kernels by the processor's model number; for a model newer
// than itself that may be those of a Pentium 4, which make matrix products four
// times slower than they could be.
#pragma once

#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace hvdlite::launch {

// The core type to ask for (OPENBLAS_CORETYPE) instead of `core`; empty if that
// one is good. `flags`: of the processor.
std::string BetterOpenBlasCore(absl::string_view core,
                               const std::set<std::string>& flags);

// Of the first processor of /proc/cpuinfo's text.
std::set<std::string> ProcessorFlags(absl::string_view cpuinfo);

// The same for this machine, by asking the library, in a process of its own
// since it starts threads. Empty, too, if it is another BLAS.
std::string BetterOpenBlasCoreHere(const std::string& library);

}  // namespace hvdlite::launch
