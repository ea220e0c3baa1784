// The variables by which MPI launchers describe a process that they start: the
// only table of their names. Before MPI runs, or without MPI, there is no other
// source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/environment.h"

namespace hvdlite::base {

// How often hvdliterun has restarted the job; unset if it does not restart
// jobs.
inline constexpr char kRestartsVariable[] = "HVDLITE_RESTARTS";

// When hvdliterun first started the job, in seconds since 1970; unset if it
// neither restarts the job nor continues it in place.
inline constexpr char kJobStartVariable[] = "HVDLITE_JOB_START";

// Minimum number of ranks with which the job continues in place; unset: 1.
inline constexpr char kMinRanksVariable[] = "HVDLITE_MIN_RANKS";

// The stream of a rank that hvdliterun's launcher forwards to a terminal
// (support::StreamIdentity); unset: none.
inline constexpr char kTerminalVariable[] = "HVDLITE_TERMINAL_STREAM";

// The variables of one launcher; "" for what it does not provide.
struct LauncherVariables {
  absl::string_view launcher;  // "Open MPI"
  absl::string_view rank;
  absl::string_view size;
  absl::string_view local_rank;  // among the ranks of its host
  absl::string_view local_size;  // ranks of its host
};

// Launchers may nest, as mpirun in a SLURM task, and processes inherit the
// outer launcher's variables. The inner launcher comes first in this list.
const std::vector<LauncherVariables>& AllLauncherVariables();

// Whether a launcher has started this process.
bool IsLaunched(const Environment& environment);

// Whether no launcher says that this process is not its first.
bool IsFirstOfLauncher(const Environment& environment);

// The rank of this process if a launcher provides it; of several launchers, the
// innermost counts.
std::optional<int64_t> RankOfLauncher(const Environment& environment);

// The number of processes that a launcher says it started, if more than one.
struct PromisedRanks {
  int64_t count = 0;
  std::string variable;  // the launcher's variable
};
std::optional<PromisedRanks> SeveralRanksPromised(
    const Environment& environment);

}  // namespace hvdlite::base
