// The dimensions that `tune` searches if the spec has none.
#pragma once

#include <string>
#include <vector>

#include "support/machine.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

using Dimensions = std::vector<Dimension>;

// The published presets; each is a whole combination of options.
bool IsPresets(const Dimension& dimension);
// Ranks x threads.
bool IsWorlds(const Dimension& dimension);
// Whether its options set only variables of hvdlite, which have no effect with
// one rank.
bool IsBetweenRanks(const Dimension& dimension);

// Returns the built-in dimensions: ranks x threads; OpenBLAS kernels; mapping;
// allocator; sizes of buckets and chunks; OpenMP's binding and waiting; huge
// pages; memory policy (on machines with NUMA nodes); memory formats of
// programs that are known to have them; the published presets of this
// processor. The presets are last, so that their ranks replace those of the
// default world. Only the file name of `program` counts. Worlds are on one host
// and, if there are several, on all `hosts` together, which are as large as
// this machine.
Dimensions BuiltInDimensions(const support::MachineFacts& machine,
                             const std::string& program, int hosts = 1);

// Returns the dimensions of the spec, or the built-in ones; with the presets at
// the end if the spec has no dimension of that name.
Dimensions DimensionsOf(const Spec& spec, const support::MachineFacts& machine);

}  // namespace hvdlite::scaling_sweep
