// Speed-up and efficiency of epoch times, such as others have published.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/scale_sim/epoch_table.h"

namespace hvdlite::scaling_sweep {

// Speed-up and strong efficiency T1/(N*TN) of each time, N in nodes, as a table
// for people. An error if the first of the table's numbers of nodes is not 1.
absl::StatusOr<std::string> EpochEfficienciesText(
    const scale_sim::EpochTable& table);

}  // namespace hvdlite::scaling_sweep
