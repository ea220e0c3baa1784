// What a program reports of its speed and threads.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hvdlite::scaling_sweep {

struct ProgramReport {
  // Of all ranks together; finite and above 0.
  double items_per_second = 0;
  // That compute; 0: it does not say.
  int threads_per_rank = 0;
};

// The speed is that of "<items>_per_second" in the report `file` (JSON; `items`
// empty: its only field of such a name): the median of the intervals after the
// first `warmup_intervals`, or, where it has no intervals, its median, or the
// number that it is. Threads are "threads_per_rank".
absl::StatusOr<ProgramReport> ReadProgramReport(const std::string& file,
                                                const std::string& items,
                                                int warmup_intervals);

}  // namespace hvdlite::scaling_sweep
