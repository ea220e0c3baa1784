// Executor: executes what the ranks have decided about operations.
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
#include "negotiation/engine/batch_collective.h"
#include "negotiation/engine/batch_trace.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/watchdog.h"
#include "negotiation/protocol/negotiator.h"

namespace hvdlite::negotiation {

// Knows this rank's operations by the tokens that the negotiator has for them,
// carries batches through the data plane, makes and ends process sets, and
// completes operations. Owns the fusion buffer and the communicators of the
// process sets that this rank is in. For whoever holds the progress lock; may
// block, in the data plane under the eye of the watchdog.
class Executor {
 public:
  // References outlive this. `serve` serves the control channel, between chunks
  // and while this rank waits for others of its node; an error of it ends the
  // batch.
  Executor(const Config& config, const CoordinatorEnvironment& environment,
           Watchdog& watchdog, OperationTable& operations,
           std::function<absl::Status()> serve);

  // From now on the token stands for the operation, until a decision ends it.
  Token Add(SubmittedPtr pending);

  // What this rank adds at the decision's gate: a batch is made ready.
  uint32_t Stage(const Decision& decision);

  // Executes a batch, a failure, the beginning or end of a process set, or
  // the end of a join, once all members of the process set are at their gate.
  // An error is the data plane's: the world is lost, and the operations
  // concerned are left to OperationTable::Fail, as they are if this throws.
  absl::Status Execute(const Decision& decision);

  // Forgets all operations, which somebody else completes.
  void ForgetOperations();

  // After the world broke: abandons the communicators of process sets, since
  // other ranks do not come to freeing them any more, and memory that MPI may
  // still use.
  void Abandon();

  // How long the data plane looks again at once before it sleeps for a peer.
  void set_spin(absl::Duration spin) { spin_ = spin; }

 private:
  struct ProcessSet {
    collective::Communicator* communicator;
    std::vector<int> members;  // empty: all ranks
    std::unique_ptr<collective::Communicator> owned;
  };

  absl::Status RunBatch(const Decision& decision);
  // The batch is that of the decision. Errors: as RunCollective.
  absl::Status Run(const Decision& decision, const Batch& batch,
                   BatchTrace& trace);
  absl::Status AddProcessSet(const Decision& decision);
  void RemoveProcessSet(const Decision& decision);
  // Completes the operation that asked for the decision.
  void CompleteRequested(const Decision& decision, const Outcome& outcome);
  SubmittedPtr Take(Token token);
  Batch TakeAll(absl::Span<const Token> tokens);

  const Config& config_;
  collective::Communicator& world_;
  const base::Clock& clock_;
  Watchdog& watchdog_;
  OperationTable& operations_;
  const std::function<absl::Status()> serve_;
  std::vector<SubmittedPtr> by_token_;
  std::vector<Token> free_tokens_;  // their operation is null
  Batch staged_;                    // what waits at its gate
  std::string description_;         // of what runs; it keeps its memory
  absl::Duration spin_;
  collective::FusionBuffer buffer_;
  // In the order in which all ranks destroy them in the end.
  absl::btree_map<ProcessSetId, ProcessSet> sets_;
};

}  // namespace hvdlite::negotiation
