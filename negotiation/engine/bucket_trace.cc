#include "negotiation/engine/bucket_trace.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvdlite::negotiation {
namespace {

using collective::FusionPhase;
using timeline::TraceEvent;

}  // namespace

BucketTrace::BucketTrace(std::shared_ptr<timeline::TraceRecorder> recorder,
                         bool trace_chunks, absl::string_view backend,
                         int64_t start_ns)
    : recorder_(std::move(recorder)),
      trace_chunks_(trace_chunks),
      backend_(backend),
      start_ns_(start_ns),
      gate_passed_ns_(start_ns) {}

void BucketTrace::OnPhase(FusionPhase phase, int64_t chunk, int64_t start_ns,
                          int64_t end_ns) {
  if (recorder_ == nullptr) return;
  const auto total = std::find_if(
      phases_.begin(), phases_.end(),
      [&](const PhaseTotal& known) { return known.phase == phase; });
  if (total != phases_.end()) {
    last_phase_ = static_cast<size_t>(total - phases_.begin());
  } else {
    ++last_phase_;
    phases_.insert(phases_.begin() + static_cast<ptrdiff_t>(last_phase_),
                   {phase});
  }
  phases_[last_phase_].duration_ns += end_ns - start_ns;
  if (phase == FusionPhase::kCommunicate) ++chunks_;
  if (trace_chunks_) chunk_events_.push_back({phase, chunk, start_ns, end_ns});
}

std::string BucketTrace::NameOf(FusionPhase phase,
                                absl::string_view collective) const {
  return phase == FusionPhase::kCommunicate
             ? absl::StrCat(backend_, "_", collective)
             : std::string(phase.name());
}

void BucketTrace::Record(const Decision& decision,
                         const std::vector<SubmittedPtr>& operations,
                         int64_t end_ns) {
  if (recorder_ == nullptr || operations.empty()) return;
  const std::string collective(
      negotiation::NameOf(operations.front()->operation.request.collective));
  const auto number = static_cast<int64_t>(decision.number);

  int64_t bucket_bytes = 0;
  for (size_t i = 0; i < operations.size(); ++i) {
    const SubmittedOperation& pending = *operations[i];
    const Request& request = pending.operation.request;
    const int64_t bytes = pending.operation.bytes();
    bucket_bytes += bytes;
    if (pending.track == 0) continue;  // not recorded, or this rank has joined
    recorder_->Record({absl::StrCat("NEGOTIATE_", collective),
                       pending.track,
                       pending.submitted_ns,
                       start_ns_ - pending.submitted_ns,
                       {{"tensor", request.name},
                        {"bytes", bytes},
                        {"last_rank", int64_t{decision.tensors[i].last_rank}},
                        {"lateness_us", decision.tensors[i].lateness_us},
                        {"picked_up_us", pending.picked_up_ns / 1000}}});
    recorder_->Record(
        {collective,
         pending.track,
         start_ns_,
         end_ns - start_ns_,
         {{"tensor", request.name}, {"bytes", bytes}, {"bucket", number}},
         TraceEvent::Kind::kComplete,
         TraceEvent::Flow::kOut,
         number});
  }
  recorder_->Record(
      {absl::StrCat(collective, "_BUCKET"),
       timeline::kBucketTrack,
       start_ns_,
       end_ns - start_ns_,
       {{"bucket", number},
        {"tensors", static_cast<int64_t>(operations.size())},
        {"bytes", bucket_bytes},
        {"chunks", chunks_},
        {"algorithm", algorithm_.empty() ? absl::StrCat(backend_, " by chunks")
                                         : algorithm_}},
       TraceEvent::Kind::kComplete,
       TraceEvent::Flow::kIn,
       number});
  RecordPhases(collective, number, bucket_bytes);
  for (const Chunk& chunk : chunk_events_) {
    recorder_->Record({NameOf(chunk.phase, collective),
                       timeline::kChunkTrack,
                       chunk.start_ns,
                       chunk.end_ns - chunk.start_ns,
                       {{"bucket", number}, {"chunk", chunk.chunk}}});
  }
}

void BucketTrace::RecordPhases(const std::string& collective, int64_t number,
                               int64_t bytes) {
  const auto record = [&](std::string name, int64_t start_ns,
                          int64_t duration_ns) {
    recorder_->Record({std::move(name),
                       timeline::kBucketTrack,
                       start_ns,
                       duration_ns,
                       {{"bucket", number}, {"bytes", bytes}}});
  };
  int64_t start_ns = start_ns_;
  if (gate_passed_ns_ > start_ns) {
    record("WAIT_FOR_RANKS", start_ns, gate_passed_ns_ - start_ns);
    start_ns = gate_passed_ns_;
  }
  if (chunks_ == 0) return;
  for (const PhaseTotal& total : phases_) {
    record(NameOf(total.phase, collective), start_ns, total.duration_ns);
    start_ns += total.duration_ns;
  }
}

}  // namespace hvdlite::negotiation
