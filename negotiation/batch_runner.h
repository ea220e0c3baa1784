// BatchRunner: carries a batch through the data plane.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "collective/communicator.h"
#include "collective/fusion_buffer.h"
#include "negotiation/batch_trace.h"
#include "negotiation/operation_table.h"
#include "negotiation/watchdog.h"

namespace hvdlite::negotiation {

// Owns the fusion buffer. For the role's holder; Run blocks, under the eye of
// the watchdog.
class BatchRunner {
 public:
  // References outlive the runner. `between_chunks` serves the control channel;
  // an error of it ends the batch.
  BatchRunner(collective::Communicator& communicator, int64_t chunk_bytes,
              const base::Clock& clock, Watchdog& watchdog,
              std::function<absl::Status()> between_chunks);

  // The operations are those of one decision: alike but for name and shape.
  // Returns the communicator's error, after which outputs are unspecified.
  absl::Status Run(const std::vector<PendingPtr>& batch, BatchTrace& trace);

 private:
  absl::Status Move(const std::vector<PendingPtr>& batch, BatchTrace& trace);

  collective::Communicator& communicator_;
  const base::Clock& clock_;
  Watchdog& watchdog_;
  const std::function<absl::Status()> between_chunks_;
  collective::FusionBuffer buffer_;
};

}  // namespace hvdlite::negotiation
