#include "negotiation/engine/executor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvdlite::negotiation {
namespace {

// Tags of MPI's messages while a process set is made; ids that share one are
// never made at the same time.
constexpr ProcessSetId kTags = 32768;

// Makes `text` "allreduce of 'x' and 3 others".
void Describe(const Batch& batch, std::string& text) {
  const Request& first = batch.front()->operation.request;
  text.clear();
  absl::StrAppend(&text, NameOf(first.collective));
  absl::AsciiStrToLower(&text);
  absl::StrAppend(&text, " of '", first.name, "'");
  if (batch.size() > 1) {
    absl::StrAppend(&text, " and ", batch.size() - 1, " others");
  }
}

int64_t BytesIn(const Batch& batch) {
  int64_t bytes = 0;
  for (const auto& submitted : batch) bytes += submitted->operation.bytes();
  return bytes;
}

collective::Reduction ReductionOf(const Request& request,
                                  collective::DataType dtype, int divisor) {
  return {.dtype = dtype,
          .op = request.op,
          .prescale = request.prescale_factor,
          .postscale = request.postscale_factor,
          .divisor = request.average ? divisor : 1,
          .compression = request.compression};
}

// ---- A batch of operations as the tensors that the data plane takes.

using collective::FusedTensor;
using collective::PartitionedTensor;

// Those of one data type can be reduced together.
template <typename Tensor>
struct OfType {
  collective::DataType dtype;
  absl::InlinedVector<Tensor, 4> tensors;
};

// There is one type, as a rule.
template <typename Tensor>
using ByDataType = absl::InlinedVector<OfType<Tensor>, 1>;

// As BytesIn of the batch.
int64_t BytesIn(absl::Span<const FusedTensor> tensors) {
  int64_t bytes = 0;
  for (const FusedTensor& tensor : tensors) {
    bytes += static_cast<int64_t>(tensor.output.size());
  }
  return bytes;
}

int64_t BytesIn(absl::Span<const PartitionedTensor> tensors) {
  int64_t bytes = 0;
  for (const PartitionedTensor& tensor : tensors) {
    bytes += static_cast<int64_t>(tensor.input.size());
  }
  return bytes;
}

// The entry of `dtype`, made if there is none.
template <typename Tensor>
OfType<Tensor>& Find(ByDataType<Tensor>& all, collective::DataType dtype) {
  for (OfType<Tensor>& entry : all) {
    if (entry.dtype == dtype) return entry;
  }
  OfType<Tensor>& entry = all.emplace_back();
  entry.dtype = dtype;
  return entry;
}

// Calls visit(operation, index of the tensor in it) for every tensor.
template <typename Visit>
void VisitTensors(const Batch& batch, const Visit& visit) {
  for (const SubmittedPtr& pending : batch) {
    const Operation& operation = pending->operation;
    for (size_t i = 0; i < operation.request.tensors.size(); ++i) {
      visit(operation, i);
    }
  }
}

absl::Span<const std::byte> InputOf(const Operation& operation, size_t i) {
  return operation.absent ? absl::Span<const std::byte>() : operation.inputs[i];
}

std::vector<size_t> BytesOf(absl::Span<const int64_t> rows,
                            const TensorSpec& tensor) {
  const int64_t row_bytes = RowBytes(tensor);
  std::vector<size_t> bytes;
  bytes.reserve(rows.size());
  for (const int64_t count : rows) {
    bytes.push_back(static_cast<size_t>(count * row_bytes));
  }
  return bytes;
}

// Has the operation allocate its outputs for `rows`, and adds its tensors with
// the given partitions of the inputs (or none).
absl::Status Allocate(const Operation& operation, const RowsByMember& rows,
                      absl::Span<const int64_t> input_rows,
                      std::vector<PartitionedTensor>& tensors) {
  HVDLITE_ASSIGN_OR_RETURN(const Outputs outputs, operation.allocate(rows));
  const Request& request = operation.request;
  if (outputs.size() != request.tensors.size()) {
    return absl::InternalError(absl::StrCat(
        "'", request.name, "': ", outputs.size(), " outputs were allocated"));
  }
  for (size_t i = 0; i < request.tensors.size(); ++i) {
    tensors.push_back({.input = operation.inputs[i],
                       .output = outputs[i],
                       .input_bytes = BytesOf(input_rows, request.tensors[i]),
                       .output_bytes = BytesOf(rows[i], request.tensors[i])});
  }
  return absl::OkStatus();
}

absl::Span<std::byte> Bytes(std::vector<int64_t>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(int64_t)};
}

// All tensors of the batch by data type, each in the batch's order.
ByDataType<FusedTensor> ByType(const Batch& batch) {
  ByDataType<FusedTensor> all;
  VisitTensors(batch, [&](const Operation& operation, size_t i) {
    Find(all, operation.request.tensors[i].dtype)
        .tensors.push_back({InputOf(operation, i), operation.outputs[i]});
  });
  return all;
}

std::vector<FusedTensor> AllTensors(const Batch& batch) {
  std::vector<FusedTensor> all;
  VisitTensors(batch, [&](const Operation& operation, size_t i) {
    all.push_back({InputOf(operation, i), operation.outputs[i]});
  });
  return all;
}

// Those of a reducescatter over `members` ranks.
ByDataType<PartitionedTensor> ScatteredByType(const Batch& batch, int members) {
  ByDataType<PartitionedTensor> all;
  VisitTensors(batch, [&](const Operation& operation, size_t i) {
    const TensorSpec& spec = operation.request.tensors[i];
    Find(all, spec.dtype)
        .tensors.push_back(
            {.input = operation.inputs[i],
             .output = operation.outputs[i],
             .input_bytes = BytesOf(
                 collective::EvenRows(spec.shape.front(), members), spec),
             .output_bytes = {}});
  });
  return all;
}

// Those of an allgather or alltoall: tells the other ranks how many rows go
// where, and has the operations allocate what comes. Collective. Errors: the
// communicator's; of an allocation.
absl::StatusOr<std::vector<PartitionedTensor>> TensorsOfRows(
    collective::Communicator& communicator, const Batch& batch) {
  const bool gathers =
      batch.front()->operation.request.collective == Collective::kAllgather;
  size_t count = 0;
  VisitTensors(batch, [&](const Operation&, size_t) { ++count; });
  const auto members = static_cast<size_t>(communicator.size());
  // [member * count + tensor]
  std::vector<int64_t> arriving(members * count);
  const std::vector<size_t> parts(members, count * sizeof(int64_t));
  if (gathers) {
    size_t next = static_cast<size_t>(communicator.rank()) * count;
    VisitTensors(batch, [&](const Operation& operation, size_t i) {
      arriving[next++] = operation.rows[i];
    });
    HVDLITE_RETURN_IF_ERROR(communicator.Allgather(Bytes(arriving), parts));
  } else {
    std::vector<int64_t> leaving(members * count);
    size_t tensor = 0;
    VisitTensors(batch, [&](const Operation& operation, size_t) {
      for (size_t member = 0; member < members; ++member) {
        leaving[member * count + tensor] = operation.rows[member];
      }
      ++tensor;
    });
    HVDLITE_RETURN_IF_ERROR(
        communicator.Alltoall(Bytes(leaving), parts, Bytes(arriving), parts));
  }

  std::vector<PartitionedTensor> tensors;
  size_t tensor = 0;
  for (const SubmittedPtr& pending : batch) {
    const Operation& operation = pending->operation;
    RowsByMember rows(operation.request.tensors.size());
    for (std::vector<int64_t>& of_tensor : rows) {
      for (size_t member = 0; member < members; ++member) {
        of_tensor.push_back(arriving[member * count + tensor]);
      }
      ++tensor;
    }
    HVDLITE_RETURN_IF_ERROR(Allocate(
        operation, rows, gathers ? absl::Span<const int64_t>() : operation.rows,
        tensors));
  }
  return tensors;
}

}  // namespace

Executor::Executor(const Config& config,
                   const CoordinatorEnvironment& environment,
                   Watchdog& watchdog, OperationTable& operations,
                   std::function<absl::Status()> serve)
    : config_(config),
      world_(environment.communicator),
      clock_(environment.clock),
      watchdog_(watchdog),
      operations_(operations),
      serve_(std::move(serve)),
      buffer_(config.chunk_bytes) {
  sets_[0] = {&world_, {}, nullptr};
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

uint32_t Executor::Stage(const Decision& decision) {
  if (decision.kind != Decision::Kind::kBatch) return 0;
  try {
    staged_.clear();
    staged_.reserve(decision.tensors.size());
    for (const Decision::Tensor& tensor : decision.tensors) {
      SubmittedPtr pending = tensor.token.has_value()
                                 ? Take(*tensor.token)
                                 : MakeNeutralOperation(*tensor.request);
      if (pending != nullptr) staged_.push_back(std::move(pending));
    }
    return 0;
  } catch (const std::exception&) {  // no memory, that is
    // The others may have counted on a rank that has not joined.
    if (decision.tensors.front().token.has_value()) throw;
    return kGateError;
  }
}

absl::Status Executor::Execute(const Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::kBatch:
      return RunBatch(decision);
    case Decision::Kind::kFailure:
      operations_.Complete(TakeAll(decision.failed),
                           absl::InvalidArgumentError(decision.message),
                           {.next_step = decision.next_step});
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

void Executor::CompleteRequested(const Decision& decision,
                                 const Outcome& outcome) {
  if (!decision.token.has_value()) return;
  if (const SubmittedPtr pending = Take(*decision.token)) {
    operations_.Complete({pending}, absl::OkStatus(), outcome);
  }
}

// ---- Process sets.

absl::Status Executor::AddProcessSet(const Decision& decision) {
  const ProcessSetId id = decision.process_set;
  if (absl::c_linear_search(decision.members, world_.rank())) {
    const Watched watched(watchdog_,
                          {.what = absl::StrCat("making process set ", id)});
    HVDLITE_ASSIGN_OR_RETURN(
        std::unique_ptr<collective::Communicator> communicator,
        world_.CreateSubgroup(decision.members, static_cast<int>(id % kTags)));
    collective::Communicator* const raw = communicator.get();
    sets_[id] = {raw, decision.members, std::move(communicator)};
    operations_.AddProcessSet(id, decision.members);
  }
  CompleteRequested(decision, {.value = id});
  return absl::OkStatus();
}

void Executor::RemoveProcessSet(const Decision& decision) {
  Batch failed = TakeAll(decision.failed);
  for (SubmittedPtr& queued :
       operations_.RemoveProcessSet(decision.process_set)) {
    failed.push_back(std::move(queued));
  }
  {
    const Watched watched(
        watchdog_,
        {.what = absl::StrCat("ending process set ", decision.process_set)});
    sets_.erase(decision.process_set);
  }
  operations_.Complete(failed, absl::InvalidArgumentError(decision.message));
  CompleteRequested(decision, {});
}

void Executor::AbandonProcessSets() {
  for (auto& [id, set] : sets_) (void)set.owned.release();
}

// ---- Batches.

absl::Status Executor::RunBatch(const Decision& decision) {
  Batch batch = std::exchange(staged_, {});
  if ((decision.gate_flags & kGateError) != 0) {
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
    BatchTrace trace(operations_.recorder(), config_.timeline_chunks,
                     world_.name(),
                     decision.arrived_ns.value_or(clock_.NowNanos()));
    trace.OnGatePassed(clock_.NowNanos());
    operations_.RecordInFlight();
    HVDLITE_RETURN_IF_ERROR(Run(decision, batch, trace));
    trace.Record(decision, batch, clock_.NowNanos());
    operations_.Complete(batch, absl::OkStatus());
    operations_.RecordInFlight();
  }
  operations_.Complete(TakeAll(decision.absent), absl::OkStatus(),
                       {.absent_everywhere = true});
  // The next one gets its memory.
  batch.clear();
  staged_ = std::move(batch);
  return absl::OkStatus();
}

absl::Status Executor::Run(const Decision& decision, const Batch& batch,
                           BatchTrace& trace) {
  const auto found = sets_.find(decision.process_set);
  if (found == sets_.end()) {
    return absl::InternalError(
        absl::StrCat("a batch of process set ", decision.process_set,
                     ", of which this rank has no communicator"));
  }
  const ProcessSet& set = found->second;
  collective::Communicator& communicator = *set.communicator;
  Describe(batch, description_);
  // One rank tells.
  const Watched watched(
      watchdog_, {.what = description_,
                  .bytes = communicator.rank() == 0 ? BytesIn(batch) : 0,
                  .chunk_bytes = static_cast<int64_t>(buffer_.bytes().size())});
  // What is done; there may be several calls of the data plane.
  struct {
    int64_t bytes = 0;       // moved by those that have returned
    int64_t call_bytes = 0;  // that the one that is running moves in all
    double share = 0;        // of those
  } done = {.call_bytes = BytesIn(batch)};
  communicator.SetSpin(spin_);
  const collective::FusionHooks hooks = {
      .on_phase =
          [&](collective::FusionPhase phase, int64_t chunk, int64_t start_ns,
              int64_t end_ns) {
            trace.OnPhase(phase, chunk, start_ns, end_ns);
          },
      .on_algorithm =
          [&](absl::string_view algorithm) { trace.OnAlgorithm(algorithm); },
      .on_progress = [&done](double share) { done.share = share; },
      .between_chunks =
          [this, &done] {  // as much as std::function holds without memory
            watchdog_.Feed(done.bytes + static_cast<int64_t>(
                                            done.share * static_cast<double>(
                                                             done.call_bytes)));
            return serve_();
          },
      .while_waiting = serve_};
  const collective::FusionResources resources = {communicator, buffer_, clock_};
  const Request& request = batch.front()->operation.request;
  const int divisor = config_.join_average_over_world ? communicator.size()
                                                      : decision.participants;
  switch (request.collective) {
    case Collective::kBarrier:
      return absl::OkStatus();
    case Collective::kAllreduce:
    case Collective::kAdasum:
      for (const auto& group : ByType(batch)) {
        done.call_bytes = BytesIn(group.tensors);
        const auto reduce = request.collective == Collective::kAdasum
                                ? collective::FusedAdasum
                                : collective::FusedAllreduce;
        HVDLITE_RETURN_IF_ERROR(
            reduce(resources, ReductionOf(request, group.dtype, divisor),
                   group.tensors, hooks));
        done.bytes += done.call_bytes;
        done.share = 0;
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
      for (const auto& group : ScatteredByType(batch, communicator.size())) {
        done.call_bytes = BytesIn(group.tensors);
        HVDLITE_RETURN_IF_ERROR(FusedReduceScatter(
            resources, ReductionOf(request, group.dtype, divisor),
            group.tensors, hooks));
        done.bytes += done.call_bytes;
        done.share = 0;
      }
      return absl::OkStatus();
    case Collective::kAllgather:
    case Collective::kAlltoall: {
      HVDLITE_ASSIGN_OR_RETURN(const auto tensors,
                               TensorsOfRows(communicator, batch));
      const auto exchange = request.collective == Collective::kAllgather
                                ? collective::FusedAllgather
                                : collective::FusedAlltoall;
      return exchange(resources, tensors, hooks);
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
