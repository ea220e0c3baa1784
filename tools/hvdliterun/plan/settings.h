// The variables that ranks get: variables of all ranks, including those for
// malloc, and variables that depend on a rank's cores.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "support/libraries.h"
#include "support/openmp.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/host_environment.h"
#include "tools/hvdliterun/plan/machine.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// The path of the library, searched in LD_LIBRARY_PATH and the system's
// directories. NotFound names the package that contains it.
absl::StatusOr<std::string> FindAllocator(
    Allocator allocator, const HostEnvironment& host_environment);

// The libraries of the program.
struct Program {
  // Empty if they are not known.
  std::vector<support::Library> libraries = {};
  std::vector<support::OpenMpRuntime> openmp = {};  // kUnknown if not known
  bool can_be_looked_into = false;
};

// The runtime for which variables are set: the linked one; kUnknown if there
// are several (then only variables that all of them know are set).
support::OpenMpRuntime RuntimeOf(
    const std::vector<support::OpenMpRuntime>& linked);

// Adds variables in the order of precedence: flags, the user's KMP_* translated
// for libgomp, the preset, variables against a second binding by MPI, the
// allocator. Notes report translations and variables that do nothing. With
// --oversubscribe a rank may share its cores with others. Then this function
// offers no OMP_PROC_BIND, because each rank would pin its first thread to the
// first shared core; AddRankVariables() decides. NotFound: the allocator's
// library does not exist.
absl::Status AddJobVariables(const Flags& flags, const Program& program,
                             const HostEnvironment& host_environment,
                             Variables& variables);

struct RankChoices {
  support::OpenMpRuntime openmp = support::OpenMpRuntime::kUnknown;
  bool threads_given = false;    // set by --threads
  bool comm_core_given = false;  // set by --comm-core
};

// The variable with which the user places threads in the runtime's own way
// (GOMP_CPU_AFFINITY, KMP_AFFINITY), or "".
std::string OwnArrangement(support::OpenMpRuntime openmp,
                           const Variables& variables);

// Adds OMP_NUM_THREADS, OMP_PROC_BIND, OMP_PLACES and HVDLITE_COORDINATOR_CORE.
// Does not place threads if the user places them, and does not pin them if
// ranks share cores.
void AddRankVariables(const Machine& machine, const RankPlan& plan,
                      const RankChoices& choices, Variables& variables);

}  // namespace hvdlite::launch
