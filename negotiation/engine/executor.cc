#include "negotiation/engine/executor.h"

#include <algorithm>
#include <exception>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/fusion/fusion.h"
#include "negotiation/engine/operation.h"

namespace hvdlite::negotiation {
namespace {

// Tags of MPI's messages while a process set is made; ids that share one are
// never made at the same time.
constexpr ProcessSetId kTags = 32768;

// "allreduce of 'x' and 3 others".
std::string Describe(const Batch& batch) {
  const Request& first = batch.front()->operation.request;
  std::string text =
      absl::StrCat(absl::AsciiStrToLower(NameOf(first.collective)), " of '",
                   first.name, "'");
  if (batch.size() > 1) {
    absl::StrAppend(&text, " and ", batch.size() - 1, " others");
  }
  return text;
}

collective::Reduction ReductionOf(const Request& request,
                                  collective::DataType dtype, int divisor) {
  return {
      .dtype = dtype,
      .op = request.op,
      .prescale = request.prescale_factor,
      .postscale = request.postscale_factor / (request.average ? divisor : 1),
      .compression = request.compression};
}

}  // namespace

Executor::Executor(const CoordinatorOptions& options,
                   collective::Communicator& communicator,
                   const base::Clock& clock, Watchdog& watchdog,
                   OperationTable& operations,
                   std::function<absl::Status()> serve)
    : options_(options),
      world_(communicator),
      clock_(clock),
      watchdog_(watchdog),
      operations_(operations),
      serve_(std::move(serve)),
      buffer_(options.chunk_bytes) {
  sets_[0] = {&communicator, {}, nullptr};
}

Token Executor::Add(SubmittedPtr pending) {
  if (free_tokens_.empty()) {
    by_token_.push_back(std::move(pending));
    return by_token_.size() - 1;
  }
  const Token token = free_tokens_.back();
  free_tokens_.pop_back();
  by_token_[token] = std::move(pending);
  return token;
}

SubmittedPtr Executor::Take(Token token) {
  if (token >= by_token_.size() || by_token_[token] == nullptr) return nullptr;
  free_tokens_.push_back(token);
  return std::move(by_token_[token]);
}

Batch Executor::TakeAll(absl::Span<const Token> tokens) {
  Batch batch;
  for (const Token token : tokens) {
    if (SubmittedPtr pending = Take(token)) batch.push_back(std::move(pending));
  }
  return batch;
}

void Executor::ForgetOperations() {
  by_token_.clear();
  free_tokens_.clear();
}

uint32_t Executor::FlagsAtGate(const Decision& decision) {
  if (decision.kind != Decision::Kind::kBatch) return 0;
  try {
    MakeReady(decision);
    return 0;
  } catch (const std::exception&) {  // no memory, that is
    return kGateRefused;
  }
}

void Executor::MakeReady(const Decision& decision) {
  ready_.clear();
  ready_.reserve(decision.tensors.size());
  for (const Decision::Tensor& tensor : decision.tensors) {
    SubmittedPtr pending = tensor.token.has_value()
                               ? Take(*tensor.token)
                               : MakeNeutralOperation(*tensor.request);
    if (pending != nullptr) ready_.push_back(std::move(pending));
  }
}

absl::Status Executor::CarryOut(const Decision& decision) {
  try {
    return CarryOutOrThrow(decision);
  } catch (const std::exception& error) {  // no memory, that is
    return absl::ResourceExhaustedError(
        absl::StrCat("decision ", decision.number,
                     " could not be carried out: ", error.what()));
  }
}

absl::Status Executor::CarryOutOrThrow(const Decision& decision) {
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

void Executor::FailOperations(const Decision& decision) {
  operations_.Complete(TakeAll(decision.failed),
                       absl::InvalidArgumentError(decision.message),
                       {.next_step = decision.next_step});
}

void Executor::CompleteRequested(const Decision& decision,
                                 const Outcome& outcome) {
  if (!decision.token.has_value()) return;
  if (const SubmittedPtr pending = Take(*decision.token)) {
    operations_.Complete({pending}, absl::OkStatus(), outcome);
  }
}

// ---- Process sets.

absl::Status Executor::AddProcessSet(const Decision& decision) {
  if (absl::c_linear_search(decision.members, world_.rank())) {
    HVDLITE_RETURN_IF_ERROR(
        MakeProcessSet(decision.process_set, decision.members));
    operations_.AddProcessSet(decision.process_set, decision.members);
  }
  CompleteRequested(decision, {.value = decision.process_set});
  return absl::OkStatus();
}

void Executor::RemoveProcessSet(const Decision& decision) {
  Batch failed = TakeAll(decision.failed);
  for (SubmittedPtr& queued :
       operations_.RemoveProcessSet(decision.process_set)) {
    failed.push_back(std::move(queued));
  }
  EndProcessSet(decision.process_set);
  operations_.Complete(failed, absl::InvalidArgumentError(decision.message));
  CompleteRequested(decision, {});
}

absl::Status Executor::MakeProcessSet(ProcessSetId id,
                                      const std::vector<int>& members) {
  const Watched watched(watchdog_, absl::StrCat("making process set ", id));
  absl::StatusOr<std::unique_ptr<collective::Communicator>> communicator =
      world_.CreateSubgroup(members, static_cast<int>(id % kTags));
  HVDLITE_RETURN_IF_ERROR(communicator.status());
  collective::Communicator* const raw = communicator->get();
  sets_[id] = {raw, members, *std::move(communicator)};
  return absl::OkStatus();
}

void Executor::EndProcessSet(ProcessSetId id) {
  const Watched watched(watchdog_, absl::StrCat("ending process set ", id));
  sets_.erase(id);
}

void Executor::AbandonProcessSets() {
  for (auto& [id, set] : sets_) (void)set.owned.release();
}

// ---- Batches.

absl::Status Executor::RunBatch(const Decision& decision) {
  Batch batch = std::exchange(ready_, {});
  if ((decision.gate_flags & kGateRefused) != 0) {
    // Where making ready has failed, not all of this rank's are in it.
    for (const Decision::Tensor& tensor : decision.tensors) {
      SubmittedPtr left =
          tensor.token.has_value() ? Take(*tensor.token) : nullptr;
      if (left != nullptr) batch.push_back(std::move(left));
    }
    operations_.Complete(
        batch, absl::ResourceExhaustedError(
                   "a rank that has joined has no memory left to take part in "
                   "it; nothing was reduced, and the world is healthy"));
  } else if (!batch.empty()) {
    BatchTrace trace(operations_.recorder(), options_.trace_chunks,
                     world_.name(),
                     decision.arrived_ns.value_or(clock_.NowNanos()));
    trace.OnGatePassed(clock_.NowNanos());
    const int divisor = options_.join_average_over_world
                            ? SizeOf(decision.process_set)
                            : decision.participants;
    HVDLITE_RETURN_IF_ERROR(Run(decision.process_set, divisor, batch, trace));
    trace.Record(decision, batch, clock_.NowNanos());
    operations_.Complete(batch, absl::OkStatus());
  }
  operations_.Complete(TakeAll(decision.absent), absl::OkStatus(),
                       {.absent_everywhere = true});
  return absl::OkStatus();
}

int Executor::SizeOf(ProcessSetId id) const {
  const auto set = sets_.find(id);
  return set == sets_.end() ? 0 : set->second.communicator->size();
}

absl::Status Executor::Run(ProcessSetId process_set, int divisor,
                           const Batch& batch, BatchTrace& trace) {
  const auto set = sets_.find(process_set);
  if (set == sets_.end()) {
    return absl::InternalError(
        absl::StrCat("a batch of process set ", process_set,
                     ", of which this rank has no communicator"));
  }
  const Watched watched(watchdog_, Describe(batch));
  set->second.communicator->SetSpin(spin_);
  return Move(set->second, divisor, batch, trace);
}

absl::Status Executor::Move(const ProcessSet& set, int divisor,
                            const Batch& batch, BatchTrace& trace) {
  const collective::FusionHooks hooks = {
      .on_phase =
          [&](collective::FusionPhase phase, int64_t chunk, int64_t start_ns,
              int64_t end_ns) {
            trace.OnPhase(phase, chunk, start_ns, end_ns);
          },
      .on_algorithm =
          [&](absl::string_view algorithm) { trace.OnAlgorithm(algorithm); },
      .between_chunks =
          [&] {
            watchdog_.Feed();
            return serve_();
          },
      .while_waiting = serve_};
  collective::Communicator& communicator = *set.communicator;
  const collective::FusionResources resources = {communicator, buffer_, clock_};
  const Request& request = batch.front()->operation.request;
  switch (request.collective) {
    case Collective::kBarrier:
      return absl::OkStatus();
    case Collective::kAllreduce:
    case Collective::kAdasum:
      for (const TensorsOfType& group : ByType(batch)) {
        const auto reduce = request.collective == Collective::kAdasum
                                ? collective::FusedAdasum
                                : collective::FusedAllreduce;
        HVDLITE_RETURN_IF_ERROR(
            reduce(resources, ReductionOf(request, group.dtype, divisor),
                   group.tensors, hooks));
      }
      return absl::OkStatus();
    case Collective::kBroadcast: {
      const auto root =
          std::find(set.members.begin(), set.members.end(), request.root_rank);
      const int root_index = set.members.empty()
                                 ? request.root_rank
                                 : static_cast<int>(root - set.members.begin());
      return FusedBroadcast(resources, root_index, AllTensors(batch), hooks);
    }
    case Collective::kReducescatter:
      for (const PartitionsOfType& group :
           ScatteredByType(batch, communicator.size())) {
        HVDLITE_RETURN_IF_ERROR(FusedReduceScatter(
            resources, ReductionOf(request, group.dtype, divisor),
            group.tensors, hooks));
      }
      return absl::OkStatus();
    case Collective::kAllgather: {
      HVDLITE_ASSIGN_OR_RETURN(const auto tensors,
                               GatheredTensors(communicator, batch));
      return FusedAllgather(resources, tensors, hooks);
    }
    case Collective::kAlltoall: {
      HVDLITE_ASSIGN_OR_RETURN(const auto tensors,
                               ExchangedTensors(communicator, batch));
      return FusedAlltoall(resources, tensors, hooks);
    }
    case Collective::kAddProcessSet:
    case Collective::kRemoveProcessSet:
    case Collective::kJoin:
      break;
  }
  return absl::InternalError(
      absl::StrCat("a batch of ", NameOf(request.collective)));
}

}  // namespace hvdlite::negotiation
