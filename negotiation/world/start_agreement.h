// What the ranks make sure of together before the coordinator starts.
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

// FailedPrecondition when `size` is 1 though the launcher promised more ranks:
// N processes would train alone without a word.
absl::Status CheckLauncher(const base::Environment& environment, int size);

// Collective. InvalidArgument on every rank when any rank's configuration
// differs from rank 0's; names the options and the ranks.
absl::Status AgreeOnConfig(collective::Communicator& communicator,
                           const Config& config);

// The table of algorithms in the file `path` as rank 0 reads it, or the
// built-in one if `path` is empty. Collective. InvalidArgument on every rank if
// it cannot be read.
absl::StatusOr<collective::AllreduceTable> ReadAllreduceTable(
    collective::Communicator& communicator, const std::string& path);

// Nanoseconds to add to this rank's clock to get rank 0's, and how far that may
// be from the truth; 0 and 0 on rank 0's host.
struct ClockOffset {
  int64_t offset_ns = 0;
  int64_t uncertainty_ns = 0;
};

// Collective. The middle of the narrowest interval that some rounds of messages
// leave for it.
absl::StatusOr<ClockOffset> MeasureClockOffset(
    collective::Communicator& communicator,
    const collective::Topology& topology, const base::Clock& clock);

}  // namespace hvdlite::internal
