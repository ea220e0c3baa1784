#include "negotiation/engine/decision_executor.h"

#include <exception>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "negotiation/engine/batch_trace.h"
#include "negotiation/engine/neutral_operation.h"

namespace hvdlite::negotiation {

DecisionExecutor::DecisionExecutor(const CoordinatorOptions& options,
                                   collective::Communicator& communicator,
                                   const base::Clock& clock, Watchdog& watchdog,
                                   OperationTable& operations,
                                   std::function<absl::Status()> serve)
    : options_(options),
      communicator_(communicator),
      clock_(clock),
      operations_(operations),
      runner_(communicator, options.chunk_bytes, clock, watchdog,
              std::move(serve)) {}

Token DecisionExecutor::Add(PendingPtr pending) {
  if (free_tokens_.empty()) {
    by_token_.push_back(std::move(pending));
    return by_token_.size() - 1;
  }
  const Token token = free_tokens_.back();
  free_tokens_.pop_back();
  by_token_[token] = std::move(pending);
  return token;
}

PendingPtr DecisionExecutor::Take(Token token) {
  if (token >= by_token_.size() || by_token_[token] == nullptr) return nullptr;
  free_tokens_.push_back(token);
  return std::move(by_token_[token]);
}

Batch DecisionExecutor::TakeAll(absl::Span<const Token> tokens) {
  Batch batch;
  for (const Token token : tokens) {
    if (PendingPtr pending = Take(token)) batch.push_back(std::move(pending));
  }
  return batch;
}

void DecisionExecutor::ForgetOperations() {
  by_token_.clear();
  free_tokens_.clear();
}

uint32_t DecisionExecutor::FlagsAtGate(const Decision& decision) {
  if (decision.kind != Decision::Kind::kBatch) return 0;
  try {
    MakeReady(decision);
    return 0;
  } catch (const std::exception&) {  // no memory, that is
    return kGateRefused;
  }
}

void DecisionExecutor::MakeReady(const Decision& decision) {
  ready_.clear();
  ready_.reserve(decision.tensors.size());
  for (const Decision::Tensor& tensor : decision.tensors) {
    PendingPtr pending = tensor.token.has_value()
                             ? Take(*tensor.token)
                             : MakeNeutralOperation(*tensor.request);
    if (pending != nullptr) ready_.push_back(std::move(pending));
  }
}

absl::Status DecisionExecutor::CarryOut(const Decision& decision) {
  try {
    return CarryOutOrThrow(decision);
  } catch (const std::exception& error) {  // no memory, that is
    return absl::ResourceExhaustedError(
        absl::StrCat("decision ", decision.number,
                     " could not be carried out: ", error.what()));
  }
}

absl::Status DecisionExecutor::CarryOutOrThrow(const Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::kBatch:
      return RunBatch(decision);
    case Decision::Kind::kFailure:
      FailOperations(decision);
      return absl::OkStatus();
    case Decision::Kind::kAddProcessSet:
      return AddProcessSet(decision);
    case Decision::Kind::kRemoveProcessSet:
      RemoveProcessSet(decision);
      return absl::OkStatus();
    case Decision::Kind::kAllJoined:
      CompleteRequested(decision, {.value = decision.last_joined});
      return absl::OkStatus();
    case Decision::Kind::kDeparture:
    case Decision::Kind::kBroken:
    case Decision::Kind::kShutdown:
      break;
  }
  return absl::InternalError(
      absl::StrCat("decision ", decision.number, " is not about operations"));
}

absl::Status DecisionExecutor::RunBatch(const Decision& decision) {
  Batch batch = std::exchange(ready_, {});
  if ((decision.gate_flags & kGateRefused) != 0) {
    // Where making ready has failed, not all of this rank's are in it.
    for (const Decision::Tensor& tensor : decision.tensors) {
      PendingPtr left =
          tensor.token.has_value() ? Take(*tensor.token) : nullptr;
      if (left != nullptr) batch.push_back(std::move(left));
    }
    operations_.Complete(
        batch, absl::ResourceExhaustedError(
                   "a rank that has joined has no memory left to take part in "
                   "it; nothing was reduced, and the world is healthy"));
  } else if (!batch.empty()) {
    BatchTrace trace(operations_.recorder(), options_.trace_chunks,
                     communicator_.name(),
                     decision.arrived_ns.value_or(clock_.NowNanos()));
    trace.OnGatePassed(clock_.NowNanos());
    const int divisor = options_.join_average_over_world
                            ? runner_.SizeOf(decision.process_set)
                            : decision.participants;
    HVDLITE_RETURN_IF_ERROR(
        runner_.Run(decision.process_set, divisor, batch, trace));
    trace.Record(decision, batch, clock_.NowNanos());
    operations_.Complete(batch, absl::OkStatus());
  }
  operations_.Complete(TakeAll(decision.absent), absl::OkStatus(),
                       {.absent_everywhere = true});
  return absl::OkStatus();
}

absl::Status DecisionExecutor::AddProcessSet(const Decision& decision) {
  if (absl::c_linear_search(decision.members, communicator_.rank())) {
    HVDLITE_RETURN_IF_ERROR(
        runner_.AddProcessSet(decision.process_set, decision.members));
    operations_.AddProcessSet(decision.process_set, decision.members);
  }
  CompleteRequested(decision, {.value = decision.process_set});
  return absl::OkStatus();
}

void DecisionExecutor::RemoveProcessSet(const Decision& decision) {
  Batch failed = TakeAll(decision.failed);
  for (PendingPtr& queued :
       operations_.RemoveProcessSet(decision.process_set)) {
    failed.push_back(std::move(queued));
  }
  runner_.RemoveProcessSet(decision.process_set);
  operations_.Complete(failed, absl::InvalidArgumentError(decision.message));
  CompleteRequested(decision, {});
}

void DecisionExecutor::FailOperations(const Decision& decision) {
  operations_.Complete(TakeAll(decision.failed),
                       absl::InvalidArgumentError(decision.message),
                       {.next_step = decision.next_step});
}

void DecisionExecutor::CompleteRequested(const Decision& decision,
                                         const Outcome& outcome) {
  if (!decision.token.has_value()) return;
  if (const PendingPtr pending = Take(*decision.token)) {
    operations_.Complete({pending}, absl::OkStatus(), outcome);
  }
}

}  // namespace hvdlite::negotiation
