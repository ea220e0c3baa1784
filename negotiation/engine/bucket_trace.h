// BucketTrace records a bucket as events of the timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "collective/fusion/fusion.h"
#include "negotiation/engine/operation.h"
#include "negotiation/protocol/negotiator.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::negotiation {

// Collects what happens while a bucket runs, and records it at the end:
// - on a track for each tensor: NEGOTIATE_ALLREDUCE from its submission to the
//   bucket's start, then ALLREDUCE to the bucket's end;
// - on the bucket track: ALLREDUCE_BUCKET and, inside it, WAIT_FOR_RANKS,
//   MEMCPY_IN_FUSION_BUFFER, MPI_ALLREDUCE (after the backend) and
//   MEMCPY_OUT_FUSION_BUFFER. Other measured phases (FusionPhase) are drawn
//   after the phase that they first followed. Phases alternate, because a
//   bucket is processed chunk by chunk. On this track each phase is drawn once,
//   as long as all its parts together;
// - on the chunk track, if enabled: each part at its real time.
// Costs nothing without a recorder. For the thread that holds the progress
// lock.
class BucketTrace {
 public:
  BucketTrace(std::shared_ptr<timeline::TraceRecorder> recorder,
              bool trace_chunks, absl::string_view backend, int64_t start_ns);

  void OnGatePassed(int64_t now_ns) { gate_passed_ns_ = now_ns; }
  void OnAlgorithm(absl::string_view algorithm) {
    if (recorder_ != nullptr) algorithm_ = std::string(algorithm);
  }
  void OnPhase(collective::FusionPhase phase, int64_t chunk, int64_t start_ns,
               int64_t end_ns);
  void Record(const Decision& decision,
              const std::vector<SubmittedPtr>& operations, int64_t end_ns);

 private:
  struct PhaseTotal {
    collective::FusionPhase phase;
    int64_t duration_ns = 0;
  };

  std::string NameOf(collective::FusionPhase phase,
                     absl::string_view collective) const;
  void RecordPhases(const std::string& collective, int64_t number,
                    int64_t bytes);

  const std::shared_ptr<timeline::TraceRecorder> recorder_;
  const bool trace_chunks_;
  const std::string backend_;
  std::string algorithm_;  // empty: not reported
  const int64_t start_ns_;
  int64_t gate_passed_ns_;
  // In the order in which they are drawn. There are rarely more than these.
  absl::InlinedVector<PhaseTotal, 6> phases_ = {
      {collective::FusionPhase::kPack},
      {collective::FusionPhase::kCommunicate},
      {collective::FusionPhase::kUnpack}};
  size_t last_phase_ = 0;  // index of the phase that ended last
  int64_t chunks_ = 0;
  struct Chunk {
    collective::FusionPhase phase;
    int64_t chunk;
    int64_t start_ns;
    int64_t end_ns;
  };
  std::vector<Chunk> chunk_events_;
};

}  // namespace hvdlite::negotiation
