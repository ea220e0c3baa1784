// The variables that ranks get: those that all of them have in common, with the
// malloc that they use, and those that follow from a rank's cores.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/openmp.h"
#include "tools/hvdliterun/plan/machine.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// Which malloc the ranks use, and how it is set up for tensors: freed memory is
// kept, since the next step needs the same again.
enum class Allocator { kDefault, kJemalloc, kTcmalloc };

absl::StatusOr<Allocator> ParseAllocator(absl::string_view text);

// Path of the library, in LD_LIBRARY_PATH and the system's folders. NotFound
// says which package has it. `exists` tells whether a file is there.
absl::StatusOr<std::string> FindAllocator(
    Allocator allocator, const base::Environment& environment,
    const std::function<bool(const std::string& path)>& exists);

struct JobChoices {
  const Preset* preset = nullptr;              // or none
  std::vector<Variable> flags = {};            // --set, and hvdlite's knobs
  std::vector<support::OpenMpRuntime> openmp;  // that the program links
  // It can be looked into, and does not link Fujitsu's large-page library.
  bool lacks_large_page_library = false;
  Allocator allocator = Allocator::kDefault;
  std::string allocator_library = {};
  bool huge_pages = false;
  // With --oversubscribe a rank may share its cores with others: then no
  // OMP_PROC_BIND is offered here, since each rank would pin its first thread
  // to the first core that they share. AddRankVariables() decides.
  bool may_share_cores = false;
};

// The runtime that settings are made for: the one that is linked; kUnknown if
// there are several (what all of them know is set, then).
support::OpenMpRuntime RuntimeOf(
    const std::vector<support::OpenMpRuntime>& linked);

// In the order of precedence: flags, the user's KMP_* in libgomp's words, the
// preset, MPIs that would bind ranks once more, the allocator. Notes say what
// was translated, and what does nothing.
void AddJobVariables(const JobChoices& choices, Variables& variables);

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
