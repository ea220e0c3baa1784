// What a program reports of its speed.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hvdlite::scaling_sweep {

// Items a second of all ranks together: of "<items>_per_second" in the report
// `file` (JSON; `items` empty: its only field of such a name) the median of the
// intervals after the first `warmup_intervals`, or, where it has no intervals,
// its median, or the number that it is. The value is finite and above 0.
absl::StatusOr<double> ItemsPerSecond(const std::string& file,
                                      const std::string& items,
                                      int warmup_intervals);

}  // namespace hvdlite::scaling_sweep
