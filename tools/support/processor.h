// What the processor can, and the kernels that OpenBLAS should take on it.
#pragma once

#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace hvdlite::base {

// Of the first processor of /proc/cpuinfo's text: "flags" of x86, "Features"
// of Arm.
std::set<std::string> CpuFlags(absl::string_view cpuinfo);

// OpenBLAS chooses its kernels by the processor's model number; for a model
// newer than itself that may be those of a Pentium 4, which make matrix
// products four times slower than they could be. Returns the core type to ask
// for (OPENBLAS_CORETYPE) instead of `core`; empty if that one is good, and on
// Arm: an OpenBLAS that has kernels for SVE takes them by itself, and no core
// type gives them to one that has none. As tools/openblas_core, which is for
// shells.
std::string BetterOpenBlasCore(absl::string_view core,
                               const std::set<std::string>& cpu_flags);

}  // namespace hvdlite::base
