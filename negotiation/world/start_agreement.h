// Checks and agreements of the ranks before the coordinator starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/environment.h"
#include "collective/communicator.h"
#include "collective/shm/allreduce_table.h"
#include "collective/topology.h"
#include "hvdlite/config.h"

namespace hvdlite::internal {

// FailedPrecondition if `size` is 1 although the launcher started more ranks.
// Otherwise N processes would train alone, without a message.
absl::Status CheckLauncher(const base::Environment& environment, int size);

// Collective. InvalidArgument on every rank if the configuration of any rank
// differs from rank 0's; names the options and the ranks.
absl::Status AgreeOnConfig(collective::Communicator& communicator,
                           const Config& config);

// Returns the table of algorithms in the file `path`, as rank 0 reads it; or
// the built-in one if `path` is empty. Collective. InvalidArgument on every
// rank if it cannot be read.
absl::StatusOr<collective::AllreduceTable> ReadAllreduceTable(
    collective::Communicator& communicator, const std::string& path);

// Nanoseconds to add to this rank's clock to get rank 0's, and the maximum
// error of that; 0 and 0 on rank 0's host.
struct ClockOffset {
  int64_t offset_ns = 0;
  int64_t uncertainty_ns = 0;
};

// Collective. Several rounds of messages each give an interval for the offset.
// The result is the middle of the narrowest one.
absl::StatusOr<ClockOffset> MeasureClockOffset(
    collective::Communicator& communicator,
    const collective::Topology& topology, const base::Clock& clock);

}  // namespace hvdlite::internal
