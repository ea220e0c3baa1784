// Executor executes the decisions about operations.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "hvdlite/config.h"
#include "negotiation/engine/bucket_collective.h"
#include "negotiation/engine/bucket_trace.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/watchdog.h"
#include "negotiation/protocol/negotiator.h"

namespace hvdlite::negotiation {

// Finds this rank's operations by the negotiator's tokens, carries buckets
// through the data plane, makes and ends process sets, and completes
// operations. Owns the fusion buffer and the communicators of this rank's
// process sets. For the thread that holds the progress lock. May block in the
// data plane, watched by the watchdog.
class Executor {
 public:
  // References must outlive the executor. `serve` serves the control channel
  // between chunks, and while this rank waits for others of its node. An error
  // of `serve` ends the bucket.
  Executor(const Config& config, const CoordinatorEnvironment& environment,
           Watchdog& watchdog, OperationTable& operations,
           std::function<absl::Status()> serve);

  // From now on the token stands for the operation, until a decision ends it.
  Token Add(SubmittedPtr pending);

  // Prepares a bucket, and returns what this rank adds at the decision's gate.
  uint32_t Stage(const Decision& decision);

  // Executes a bucket, a failure, the beginning or end of a process set, or the
  // end of a join. All members of the process set must have passed the gate. An
  // error comes from the data plane: the world is lost. Then, and if this
  // throws, OperationTable::Fail has to complete the operations.
  absl::Status Execute(const Decision& decision);

  // Forgets all operations; the caller completes them.
  void ForgetOperations();

  // Call this after the world broke. Does not free the communicators of process
  // sets, since freeing is collective, nor memory that MPI may still use.
  void Abandon();

  // How long the data plane spins before it sleeps for a peer.
  void set_spin(absl::Duration spin) { spin_ = spin; }

 private:
  struct ProcessSet {
    collective::Communicator* communicator;
    std::vector<int> members;  // empty: all ranks
    std::unique_ptr<collective::Communicator> owned;
  };

  absl::Status RunBucket(const Decision& decision);
  // The bucket belongs to the decision. Errors: as for RunCollective.
  absl::Status Run(const Decision& decision, const Bucket& bucket,
                   BucketTrace& trace);
  absl::Status AddProcessSet(const Decision& decision);
  void RemoveProcessSet(const Decision& decision);
  // Completes the operation that asked for the decision.
  void CompleteRequested(const Decision& decision, const Outcome& outcome);
  SubmittedPtr Take(Token token);
  Bucket TakeAll(absl::Span<const Token> tokens);

  const Config& config_;
  collective::Communicator& world_;
  const base::Clock& clock_;
  Watchdog& watchdog_;
  OperationTable& operations_;
  const std::function<absl::Status()> serve_;
  std::vector<SubmittedPtr> by_token_;
  std::vector<Token> free_tokens_;  // they have no operation
  Bucket staged_;                   // the bucket that waits at its gate
  std::string description_;         // of the running call; memory is reused
  absl::Duration spin_;
  collective::FusionBuffer buffer_;
  // In the order in which all ranks destroy them at the end.
  absl::btree_map<ProcessSetId, ProcessSet> sets_;
};

}  // namespace hvdlite::negotiation
