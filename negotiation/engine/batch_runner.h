// BatchRunner: carries batches through the data plane.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "negotiation/engine/batch_trace.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/watchdog.h"

namespace hvdlite::negotiation {

// Owns the fusion buffer and the communicators of the process sets that this
// rank is in. For the role's holder; everything blocks, under the eye of the
// watchdog.
class BatchRunner {
 public:
  // References outlive the runner. `serve` serves the control channel, between
  // chunks and while this rank waits for others of its node; an error of it
  // ends the batch.
  BatchRunner(collective::Communicator& world, int64_t chunk_bytes,
              const base::Clock& clock, Watchdog& watchdog,
              std::function<absl::Status()> serve);

  // How long the data plane looks again at once before it sleeps for a peer.
  void set_spin(absl::Duration spin) { spin_ = spin; }

  // The following begin when all members of the process set are at their gate.

  // Collective over `members`, of which this rank is one.
  absl::Status AddProcessSet(ProcessSetId id, const std::vector<int>& members);
  // Collective over the set's members; nothing on other ranks.
  void RemoveProcessSet(ProcessSetId id);

  // Gives up the communicators of process sets without freeing them: other
  // ranks do not come to that any more.
  void AbandonProcessSets();

  // Members of a process set that this rank is in; 0 for others.
  int SizeOf(ProcessSetId id) const;

  // The operations are those of one decision: of one process set that this rank
  // is in, alike but for names and tensors. Averages divide by `divisor`.
  // Returns the first error, after which outputs are unspecified.
  absl::Status Run(ProcessSetId process_set, int divisor,
                   const std::vector<PendingPtr>& batch, BatchTrace& trace);

 private:
  struct ProcessSet {
    collective::Communicator* communicator;
    std::vector<int> members;  // empty: all ranks
    std::unique_ptr<collective::Communicator> owned;
  };

  absl::Status Move(const ProcessSet& set, int divisor,
                    const std::vector<PendingPtr>& batch, BatchTrace& trace);

  const base::Clock& clock_;
  Watchdog& watchdog_;
  const std::function<absl::Status()> serve_;
  absl::Duration spin_;
  collective::FusionBuffer buffer_;
  collective::Communicator& world_;
  // In the order in which all ranks destroy them in the end.
  absl::btree_map<ProcessSetId, ProcessSet> sets_;
};

}  // namespace hvdlite::negotiation
