// DecisionExecutor: carries out what the ranks have decided about operations.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "collective/communicator.h"
#include "negotiation/engine/batch_runner.h"
#include "negotiation/engine/batch_tensors.h"
#include "negotiation/engine/coordinator.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/watchdog.h"
#include "negotiation/protocol/negotiator.h"

namespace hvdlite::negotiation {

// Knows this rank's operations by the tokens that the negotiator has for them,
// runs batches, makes and ends process sets, and completes operations. For the
// role's holder; may block.
class DecisionExecutor {
 public:
  // References outlive this. `serve`: see BatchRunner.
  DecisionExecutor(const CoordinatorOptions& options,
                   collective::Communicator& communicator,
                   const base::Clock& clock, Watchdog& watchdog,
                   OperationTable& operations,
                   std::function<absl::Status()> serve);

  // From now on the token stands for the operation, until a decision ends it.
  Token Add(PendingPtr pending);

  // What this rank adds at the decision's gate: a batch is made ready.
  uint32_t FlagsAtGate(const Decision& decision);

  // Carries out a batch, a failure, the beginning or end of a process set, or
  // the end of a join. An error is the data plane's: the world is lost, and the
  // operations concerned are left to OperationTable::Fail.
  absl::Status CarryOut(const Decision& decision);

  // Forgets all operations, which somebody else completes.
  void ForgetOperations();
  // See BatchRunner.
  void AbandonProcessSets() { runner_.AbandonProcessSets(); }

  // As BatchRunner::set_spin.
  void set_spin(absl::Duration spin) { runner_.set_spin(spin); }

 private:
  absl::Status CarryOutOrThrow(const Decision& decision);
  void MakeReady(const Decision& decision);
  absl::Status RunBatch(const Decision& decision);
  absl::Status AddProcessSet(const Decision& decision);
  void RemoveProcessSet(const Decision& decision);
  void FailOperations(const Decision& decision);
  // Completes the operation that asked for the decision.
  void CompleteRequested(const Decision& decision, const Outcome& outcome);
  PendingPtr Take(Token token);
  Batch TakeAll(absl::Span<const Token> tokens);

  const CoordinatorOptions options_;
  collective::Communicator& communicator_;
  const base::Clock& clock_;
  OperationTable& operations_;
  std::vector<PendingPtr> by_token_;
  std::vector<Token> free_tokens_;  // their operation is null
  Batch ready_;                     // what waits at its gate
  BatchRunner runner_;
};

}  // namespace hvdlite::negotiation
