// What a program reports of its speed.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace hvdlite::scaling_sweep {

// What a program reports of its speed and threads.
struct ProgramReport {
  // Of all ranks together; finite and above 0.
  double items_per_second = 0;
  // That compute; 0: it does not say.
  int threads_per_rank = 0;
  // What it says of where it ran, by name: "processor", "LibTorch", ...
  std::map<std::string, std::string> machine = {};
};

// The speed is that of "<items>_per_second" in the report `file` (JSON; `items`
// empty: its only field of such a name): the median of the intervals after the
// first `warmup_intervals`, or, where it has no intervals, its median, or the
// number that it is. Threads are "threads_per_rank"; the machine is "machine",
// of whose values those that are text count.
absl::StatusOr<ProgramReport> ReadProgramReport(const std::string& file,
                                                const std::string& items,
                                                int warmup_intervals);

}  // namespace hvdlite::scaling_sweep
