// StreamReducer: an allreduce that needs no buffer in between.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collective/fusion/fused_rounds.h"
#include "collective/fusion/fusion.h"
#include "collective/fusion/reduction.h"

namespace hvdlite::collective {

// What a Communicator offers whose ranks see each other's memory: it takes the
// elements from the tensors, and returns them there, in passes of its own.
class StreamReducer {
 public:
  virtual ~StreamReducer() = default;

  // Collective, and blocking: as FusedAllreduce in a world of several ranks.
  // Tells `timer` of the phases of each chunk, and pauses it between chunks.
  // Arguments have been checked. Threads and errors as the communicator's.
  virtual absl::Status ReduceStream(const Reduction& reduction,
                                    absl::Span<const FusedTensor> tensors,
                                    PhaseTimer& timer) = 0;
};

}  // namespace hvdlite::collective
