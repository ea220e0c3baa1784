// The variables that follow from a rank's cores.
#pragma once

#include <optional>
#include <string>

#include "tools/hvdliterun/plan/machine.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/variables.h"
#include "tools/support/linked_libraries.h"

namespace hvdlite::launch {

struct RankChoices {
  OpenMpRuntime openmp = OpenMpRuntime::kUnknown;
  bool threads_given = false;    // by --threads
  bool comm_core_given = false;  // by --comm-core
};

// The variable of the user's that arranges threads in the runtime's own way
// (GOMP_CPU_AFFINITY, KMP_AFFINITY), or "".
std::string OwnArrangement(OpenMpRuntime openmp, const Variables& variables);

// OMP_NUM_THREADS, OMP_PROC_BIND, OMP_PLACES and HVDLITE_COORDINATOR_CORE.
// Threads are left where they are when the user arranges them himself, and are
// not pinned where ranks share cores.
void AddRankVariables(const Machine& machine, const RankPlan& plan,
                      const RankChoices& choices, Variables& variables);

}  // namespace hvdlite::launch
