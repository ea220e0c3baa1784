// What `tune` tries where the SPEC does not say.
#pragma once

#include <string>

#include "tools/scaling_sweep/tune/candidate.h"
#include "tools/support/machine.h"

namespace hvdlite::scaling_sweep {

// OpenBLAS kernels; ranks by threads; mapping; allocator; OpenMP's binding
// and waiting; huge pages; memory policy (on machines with NUMA nodes); memory
// formats of programs that are known to have them; the published presets, last,
// so that their ranks count and not those of the default world. `program` is a
// path; its last part counts.
Dimensions BuiltInDimensions(const Machine& machine,
                             const std::string& program);

// The SPEC's own dimensions, or the built-in ones; with the presets at the end
// if the SPEC has no dimension of that name.
Dimensions DimensionsOf(const Spec& spec, const Machine& machine);

}  // namespace hvdlite::scaling_sweep
