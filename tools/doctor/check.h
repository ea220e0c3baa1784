// Check: looks for one cause of slow training and returns its findings.
#pragma once

#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/environment.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "support/libraries.h"
#include "support/machine.h"
#include "tools/doctor/blas_library.h"

namespace hvdlite::doctor {

// From best to worst.
enum class Verdict {
  kOk,
  kNote,     // worth knowing; may cost a little
  kWarning,  // costs time or is misleading
  kProblem   // costs much time or breaks something
};

// One verdict about the machine, the environment or the world.
struct Finding {
  std::string check = "";  // name of the check; set by RunChecks()
  Verdict verdict = Verdict::kOk;
  std::string seen;  // what was seen, and where
  std::string remedy =
      "";  // the command or setting that fixes it; may be empty
  // The ranks of the finding, ascending; empty: the rank that returns it.
  std::vector<int> ranks = {};
};

using Findings = std::vector<Finding>;

// What MPI reported at its start.
struct MpiFacts {
  std::string library;       // "Open MPI v4.1.4"
  std::string thread_level;  // the highest level it offers
  // Why hvdlite cannot use this MPI; empty: it can.
  std::string error = "";
};

// The input of every check.
struct Session {
  collective::Communicator& communicator;
  const collective::Topology& topology;
  base::Environment environment;
  support::SystemFiles files;
  // Read before any library binds the main thread.
  std::vector<int> allowed_cpus;
  std::string program = "";  // named by --program; empty: none
  // Of `program`, or of this process.
  std::vector<support::Library> libraries = {};
  LoadedBlas blas = {};
  std::optional<MpiFacts> mpi = std::nullopt;  // nullopt: MPI is not used
};

// Collective: all ranks run the same checks in the same order. Each rank
// returns findings about itself. Rank 0 also returns the findings that compare
// ranks, with the numbers of the ranks. Errors of the communicator are passed
// on unchanged.
using CheckFunction = absl::StatusOr<Findings>(Session& session);

// A row of the table in doctor.cc.
struct Check {
  std::string name;    // argument of --check
  std::string sees;    // for help texts
  CheckFunction* run;  // defined in a file in checks/
  bool slow = false;   // measures; --skip-slow skips it
};

// 0, 1, ..., size - 1.
inline std::vector<int> RanksUpTo(size_t size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// The ranks of each host, ascending.
inline std::map<std::string, std::vector<int>> RanksByHost(
    absl::Span<const std::string> host_of_rank) {
  std::map<std::string, std::vector<int>> ranks;
  for (const int rank : RanksUpTo(host_of_rank.size())) {
    ranks[host_of_rank[rank]].push_back(rank);
  }
  return ranks;
}

}  // namespace hvdlite::doctor
