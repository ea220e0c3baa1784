#include "negotiation/batch_runner.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "collective/fused_collectives.h"

namespace hvdlite::negotiation {
namespace {

// "allreduce of 'x' and 3 other tensors".
std::string Describe(const std::vector<PendingPtr>& batch) {
  const Request& first = batch.front()->operation.request;
  std::string text =
      absl::StrCat(absl::AsciiStrToLower(NameOf(first.collective)), " of '",
                   first.name, "'");
  if (batch.size() > 1) {
    absl::StrAppend(&text, " and ", batch.size() - 1, " other tensors");
  }
  return text;
}

}  // namespace

BatchRunner::BatchRunner(collective::Communicator& communicator,
                         int64_t chunk_bytes, const base::Clock& clock,
                         Watchdog& watchdog,
                         std::function<absl::Status()> between_chunks)
    : communicator_(communicator),
      clock_(clock),
      watchdog_(watchdog),
      between_chunks_(std::move(between_chunks)),
      buffer_(chunk_bytes) {}

absl::Status BatchRunner::Run(const std::vector<PendingPtr>& batch,
                              BatchTrace& trace) {
  watchdog_.Enter(Describe(batch));
  // Sleeps until all ranks are here: nobody spins for a straggler below.
  absl::Status status = communicator_.Barrier();
  trace.OnGatePassed(clock_.NowNanos());
  const bool moves_data =
      batch.front()->operation.request.collective != Collective::kBarrier;
  if (status.ok() && moves_data) status = Move(batch, trace);
  watchdog_.Exit();
  return status;
}

absl::Status BatchRunner::Move(const std::vector<PendingPtr>& batch,
                               BatchTrace& trace) {
  std::vector<collective::FusedTensor> tensors;
  tensors.reserve(batch.size());
  for (const PendingPtr& pending : batch) {
    tensors.push_back({pending->operation.input, pending->operation.output});
  }
  const collective::FusionHooks hooks = {
      .on_phase =
          [&](collective::FusionPhase phase, int64_t chunk, int64_t start_ns,
              int64_t end_ns) {
            trace.OnPhase(phase, chunk, start_ns, end_ns);
          },
      .between_chunks =
          [&] {
            watchdog_.Feed();
            return between_chunks_();
          }};
  const collective::FusionResources resources = {communicator_, buffer_,
                                                 clock_};
  const Request& request = batch.front()->operation.request;
  if (request.collective == Collective::kBroadcast) {
    return FusedBroadcast(resources, request.root_rank, tensors, hooks);
  }
  const double divisor = request.average ? communicator_.size() : 1;
  return FusedAllreduce(resources, request.dtype, request.op,
                        request.prescale_factor,
                        request.postscale_factor / divisor, tensors, hooks);
}

}  // namespace hvdlite::negotiation
