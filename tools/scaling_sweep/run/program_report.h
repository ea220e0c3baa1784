// Reads the report of a program.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace hvdlite::scaling_sweep {

// The speed and the threads that a program reports.
struct ProgramReport {
  // Of all ranks together; finite and above 0.
  double items_per_second = 0;
  // Computing threads; 0: not reported.
  int threads_per_rank = 0;
  // Properties of the machine, by name: "processor", "LibTorch", ...
  std::map<std::string, std::string> machine = {};
};

// Reads the report `file` (JSON). The speed is "<items>_per_second" (`items`
// empty: the only field with such a name): the median of its intervals after
// the first `warmup_intervals`; without intervals its median; or the number
// itself. Threads are "threads_per_rank"; the machine is the strings in
// "machine".
absl::StatusOr<ProgramReport> ReadProgramReport(const std::string& file,
                                                const std::string& items,
                                                int warmup_intervals);

}  // namespace hvdlite::scaling_sweep
