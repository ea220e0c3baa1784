#include "negotiation/engine/batch_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/fusion/fusion.h"
#include "negotiation/engine/batch_tensors.h"

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

BatchRunner::BatchRunner(collective::Communicator& world, int64_t chunk_bytes,
                         const base::Clock& clock, Watchdog& watchdog,
                         std::function<absl::Status()> serve)
    : clock_(clock),
      watchdog_(watchdog),
      serve_(std::move(serve)),
      buffer_(chunk_bytes),
      world_(world) {
  sets_[0] = {&world, {}, nullptr};
}

absl::Status BatchRunner::AddProcessSet(ProcessSetId id,
                                        const std::vector<int>& members) {
  const Watched watched(watchdog_, absl::StrCat("making process set ", id));
  absl::StatusOr<std::unique_ptr<collective::Communicator>> communicator =
      world_.CreateSubgroup(members, static_cast<int>(id % kTags));
  HVDLITE_RETURN_IF_ERROR(communicator.status());
  collective::Communicator* const raw = communicator->get();
  sets_[id] = {raw, members, *std::move(communicator)};
  return absl::OkStatus();
}

void BatchRunner::RemoveProcessSet(ProcessSetId id) {
  const Watched watched(watchdog_, absl::StrCat("ending process set ", id));
  sets_.erase(id);
}

void BatchRunner::AbandonProcessSets() {
  for (auto& [id, set] : sets_) (void)set.owned.release();
}

int BatchRunner::SizeOf(ProcessSetId id) const {
  const auto set = sets_.find(id);
  return set == sets_.end() ? 0 : set->second.communicator->size();
}

absl::Status BatchRunner::Run(ProcessSetId process_set, int divisor,
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

absl::Status BatchRunner::Move(const ProcessSet& set, int divisor,
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
