// What `tune` chooses from where the SPEC does not say.
#pragma once

#include <string>
#include <vector>

#include "support/machine.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

using Dimensions = std::vector<Dimension>;

// The published presets, each of which stands for a whole combination.
bool IsPresets(const Dimension& dimension);
// Ranks by threads.
bool IsWorlds(const Dimension& dimension);
// Its options set hvdlite's variables and nothing else: with one rank they do
// nothing.
bool IsBetweenRanks(const Dimension& dimension);

// Ranks by threads; OpenBLAS kernels; mapping; allocator; sizes of batches and
// chunks; OpenMP's binding and waiting; huge pages; memory policy (on machines
// with NUMA nodes); memory formats of programs that are known to have them; the
// published presets of this processor, last, so that their ranks count and not
// those of the default world. `program` is a path; its last part counts. Worlds
// are those of one host and, if there are several, of all `hosts` together, as
// large as this machine.
Dimensions BuiltInDimensions(const support::MachineFacts& machine,
                             const std::string& program, int hosts = 1);

// The SPEC's own dimensions, or the built-in ones; with the presets at the end
// if the SPEC has no dimension of that name.
Dimensions DimensionsOf(const Spec& spec, const support::MachineFacts& machine);

}  // namespace hvdlite::scaling_sweep
