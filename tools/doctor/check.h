// Check: looks for one thing that makes training slow, and says what it found.
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
  kWarning,  // costs time, or misleads
  kProblem   // costs much time, or breaks something
};

// One verdict about the machine, the environment or the world.
struct Finding {
  std::string check = "";  // its name, which RunChecks() writes
  Verdict verdict = Verdict::kOk;
  std::string seen;  // what was seen, where
  std::string remedy =
      "";  // the command or setting that mends it; may be empty
  // The ranks that it is about, ascending; empty: the one that returns it.
  std::vector<int> ranks = {};
};

using Findings = std::vector<Finding>;

// What MPI said when it was started.
struct MpiFacts {
  std::string library;       // "Open MPI v4.1.4"
  std::string thread_level;  // the highest that it offers
  // Why hvdlite cannot use it; empty: it can.
  std::string error = "";
};

// What every check may look at.
struct Session {
  collective::Communicator& communicator;
  const collective::Topology& topology;
  base::Environment environment;
  support::SystemFiles files;
  // Before any library bound the main thread.
  std::vector<int> allowed_cpus;
  std::string program = "";  // that --program names; empty: none
  // Of `program`, or of this process.
  std::vector<support::Library> libraries = {};
  LoadedBlas blas = {};
  std::optional<MpiFacts> mpi = std::nullopt;  // nullopt: MPI is not used
};

// Collective: all ranks run the same checks in the same order. What a rank
// finds about itself it returns; what is found by comparing ranks rank 0
// returns, with their numbers. Errors of the communicator are returned as they
// are.
using CheckFunction = absl::StatusOr<Findings>(Session& session);

// A row of the table in doctor.cc.
struct Check {
  std::string name;    // that --check takes
  std::string sees;    // for help texts
  CheckFunction* run;  // the end of a file in checks/
  bool slow = false;   // measures; left out by --skip-slow
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
