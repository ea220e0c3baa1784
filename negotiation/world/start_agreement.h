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
#include "collective/topology.h"
#include "torch_plugin/include/hvdlite/config.h"

namespace hvdlite::internal {

// FailedPrecondition when `size` is 1 though the launcher promised more ranks:
// N processes would train alone without a word.
absl::Status CheckLauncher(const base::Environment& environment, int size);

// Collective. InvalidArgument on every rank when any rank's configuration
// differs from rank 0's; names the options and the ranks.
absl::Status AgreeOnConfig(collective::Communicator& communicator,
                           const Config& config);

// Collective. Nanoseconds to add to this rank's clock to get rank 0's: the
// middle of the narrowest interval that some rounds of messages leave for it;
// exactly 0 on rank 0's host.
absl::StatusOr<int64_t> MeasureClockOffset(
    collective::Communicator& communicator,
    const collective::Topology& topology, const base::Clock& clock);

}  // namespace hvdlite::internal
