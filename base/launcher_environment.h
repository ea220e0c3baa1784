// What MPI launchers tell the processes that they start, by variables: the one
// table of their names. Before MPI runs, or where there is none, nothing else
// tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/environment.h"

namespace hvdlite::base {

// How often hvdliterun has started the job before; unset where it does not
// start jobs again.
inline constexpr char kRestartsVariable[] = "HVDLITE_RESTARTS";

// When hvdliterun first started the job, in seconds since 1970; unset where it
// neither starts jobs again nor has them go on in place.
inline constexpr char kJobStartVariable[] = "HVDLITE_JOB_START";

// With how many ranks hvdliterun's job goes on in place at least; unset: 1.
inline constexpr char kMinRanksVariable[] = "HVDLITE_MIN_RANKS";

// Which stream of a rank hvdliterun's launcher passes on to a terminal
// (support::StreamIdentity); unset: none.
inline constexpr char kTerminalVariable[] = "HVDLITE_TERMINAL_STREAM";

// The variables of one launcher; "" for what it does not tell.
struct LauncherVariables {
  absl::string_view launcher;  // "Open MPI"
  absl::string_view rank;
  absl::string_view size;
  absl::string_view local_rank;  // among the ranks of its host
  absl::string_view local_size;  // ranks of its host
};

// A launcher may have been started by another, whose variables its processes
// inherit: those of the inner one come first (mpirun in a SLURM task).
const std::vector<LauncherVariables>& AllLauncherVariables();

// Whether a launcher has started this process.
bool IsLaunched(const Environment& environment);

// Whether no launcher says that this process is another than its first.
bool IsFirstOfLauncher(const Environment& environment);

// The rank of this process, if a launcher tells it: where several do, the
// innermost.
std::optional<int64_t> RankOfLauncher(const Environment& environment);

// What a launcher says that it has started, if that is more than one process.
struct PromisedRanks {
  int64_t count = 0;
  std::string variable;  // that says so
};
std::optional<PromisedRanks> SeveralRanksPromised(
    const Environment& environment);

}  // namespace hvdlite::base
