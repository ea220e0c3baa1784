// The variables that ranks get: those that all of them have in common, with the
// malloc that they use, and those that follow from a rank's cores.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "support/libraries.h"
#include "support/openmp.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/machine.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/surroundings.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// Path of the library, in LD_LIBRARY_PATH and the system's folders. NotFound
// says which package has it.
absl::StatusOr<std::string> FindAllocator(Allocator allocator,
                                          const Surroundings& surroundings);

// What the program links.
struct Program {
  // Empty where it cannot be told.
  std::vector<support::Library> libraries = {};
  std::vector<support::OpenMpRuntime> openmp = {};  // kUnknown, likewise
  bool can_be_looked_into = false;
};

// The runtime that settings are made for: the one that is linked; kUnknown if
// there are several (what all of them know is set, then).
support::OpenMpRuntime RuntimeOf(
    const std::vector<support::OpenMpRuntime>& linked);

// In the order of precedence: flags, the user's KMP_* in libgomp's words, the
// preset, MPIs that would bind ranks once more, the allocator. Notes say what
// was translated, and what does nothing. With --oversubscribe a rank may share
// its cores with others: then no OMP_PROC_BIND is offered here, since each rank
// would pin its first thread to the first core that they share;
// AddRankVariables() decides. NotFound: the allocator is not there.
absl::Status AddJobVariables(const Flags& flags, const Program& program,
                             const Surroundings& surroundings,
                             Variables& variables);

struct RankChoices {
  support::OpenMpRuntime openmp = support::OpenMpRuntime::kUnknown;
  bool threads_given = false;    // by --threads
  bool comm_core_given = false;  // by --comm-core
};

// The variable of the user's that arranges threads in the runtime's own way
// (GOMP_CPU_AFFINITY, KMP_AFFINITY), or "".
std::string OwnArrangement(support::OpenMpRuntime openmp,
                           const Variables& variables);

// OMP_NUM_THREADS, OMP_PROC_BIND, OMP_PLACES and HVDLITE_COORDINATOR_CORE.
// Threads are left where they are when the user arranges them himself, and are
// not pinned where ranks share cores.
void AddRankVariables(const Machine& machine, const RankPlan& plan,
                      const RankChoices& choices, Variables& variables);

}  // namespace hvdlite::launch
