// The course of a fused collective: its arguments are checked, then it packs,
// communicates, unpacks, and again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// The checks come before anything is communicated; they name tensors by their
// index in the bucket.

// InvalidArgument unless every input has its output's size or, if
// `input_optional`, none, and that is a whole number of elements.
absl::Status CheckTensors(absl::Span<const FusedTensor> tensors,
                          size_t element_bytes, bool input_optional);

// InvalidArgument unless the data type is known and has the operation.
absl::Status CheckReduction(const Reduction& reduction);

// InvalidArgument unless `partition` distributes `bytes` bytes, those of the
// `what` ("input", say) of a tensor, over `size` ranks in whole elements.
absl::Status CheckPartition(size_t tensor, absl::string_view what, size_t bytes,
                            absl::Span<const size_t> partition, int size,
                            size_t element_bytes = 1);

// InvalidArgument unless the `what` of a tensor has the size that the partition
// gives to `rank`.
absl::Status CheckPart(size_t tensor, absl::string_view what, size_t bytes,
                       absl::Span<const size_t> partition, int rank);

// Tells the hooks what happens. Each phase begins where the one before ended,
// or the pause; reads the clock only if there is somebody to tell. Keeps
// references to the clock and the hooks.
class PhaseTimer {
 public:
  PhaseTimer(const base::Clock& clock, const FusionHooks& hooks)
      : clock_(clock), hooks_(hooks) {
    Restart();
  }

  void AlgorithmChosen(absl::string_view algorithm) {
    if (hooks_.on_algorithm) hooks_.on_algorithm(algorithm);
  }

  // A phase of `chunk` is over.
  void PhaseOver(FusionPhase phase, int64_t chunk) {
    if (!hooks_.on_phase) return;
    const int64_t start_ns = start_ns_;
    Restart();
    hooks_.on_phase(phase, chunk, start_ns, start_ns_);
  }

  // To be called between two chunks, with the share of the call that is done:
  // of its bytes that have been through all phases.
  absl::Status Pause(double share) {
    if (hooks_.on_progress) hooks_.on_progress(share);
    if (!hooks_.between_chunks) return absl::OkStatus();
    HVDLITE_RETURN_IF_ERROR(hooks_.between_chunks());
    Restart();
    return absl::OkStatus();
  }

  // What the caller wants to be done meanwhile, where a rank waits inside a
  // phase.
  absl::Status Serve() {
    return hooks_.while_waiting ? hooks_.while_waiting() : absl::OkStatus();
  }

 private:
  void Restart() {
    if (hooks_.on_phase) start_ns_ = clock_.NowNanos();
  }

  const base::Clock& clock_;
  const FusionHooks& hooks_;
  int64_t start_ns_ = 0;
};

// How many chunks of at most `chunk_bytes` carry `bytes`.
inline int64_t NumRounds(size_t bytes, size_t chunk_bytes) {
  return static_cast<int64_t>((bytes + chunk_bytes - 1) / chunk_bytes);
}

// Calls pack(), communicate() (which returns absl::Status) and unpack() for
// each of `num_rounds` chunks, which it numbers from 0. The first error ends
// it.
template <typename Pack, typename Communicate, typename Unpack>
absl::Status RunRounds(int64_t num_rounds, PhaseTimer& timer, const Pack& pack,
                       const Communicate& communicate, const Unpack& unpack) {
  for (int64_t round = 0; round < num_rounds; ++round) {
    if (round > 0) {
      HVDLITE_RETURN_IF_ERROR(timer.Pause(static_cast<double>(round) /
                                          static_cast<double>(num_rounds)));
    }
    pack();
    timer.PhaseOver(FusionPhase::kPack, round);
    HVDLITE_RETURN_IF_ERROR(communicate());
    timer.PhaseOver(FusionPhase::kCommunicate, round);
    unpack();
    timer.PhaseOver(FusionPhase::kUnpack, round);
  }
  return absl::OkStatus();
}

// The course of an allreduce of `communicator`: as many elements as fit in
// their wire type are packed into `buffer`, reduced there, unpacked, and so on.
// Where the communicator can do several allreduces at once, `buffer` holds as
// many chunks, which are packed and unpacked while others travel. Arguments
// have been checked.
absl::Status ReduceByChunks(Communicator& communicator,
                            absl::Span<std::byte> buffer,
                            const Reduction& reduction,
                            absl::Span<const FusedTensor> tensors,
                            PhaseTimer& timer);

}  // namespace hvdlite::collective
