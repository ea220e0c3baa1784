// Collectives over many tensors at once: packed into the fusion buffer, reduced
// and unpacked, chunk by chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "collective/communicator.h"
#include "collective/fusion_buffer.h"

namespace hvdlite::collective {

// One tensor of a batch, as contiguous bytes.
struct FusedTensor {
  // What this rank contributes. Empty: nothing (the op's neutral element; for
  // sums, zeros), while `output` has the tensor's size.
  absl::Span<const std::byte> input;
  // Where the result goes; may be `input` itself, must not overlap it
  // otherwise.
  absl::Span<std::byte> output;
};

enum class FusionPhase { kPack, kCommunicate, kUnpack };

// What the caller wants to know and do while a batch runs; both may be empty.
struct FusionHooks {
  // A phase of one chunk is over.
  std::function<void(FusionPhase phase, int64_t chunk, int64_t start_ns,
                     int64_t end_ns)>
      on_phase;
  // Called after every chunk but the last; must not use the communicator. An
  // error ends the batch.
  std::function<absl::Status()> between_chunks;
};

// A communicator's fusion buffer and the clock that times the phases.
struct FusionResources {
  Communicator& communicator;
  FusionBuffer& buffer;  // its size is the chunk size
  const base::Clock& clock;
};

// output = postscale * reduce_over_ranks(prescale * input), for every tensor.
// All ranks pass tensors of the same sizes in the same order and the same
// dtype, op and scales; tensors are aligned to their elements. Scaling of
// integers and bools is done in double and truncated toward zero (see
// CopyScaled). A world of one copies (and scales) without the buffer, and calls
// no hooks. Errors: InvalidArgument, before anything is communicated, when an
// input is neither empty nor of its output's size; the communicator's first
// error. Outputs are then unspecified.
absl::Status FusedAllreduce(const FusionResources& resources, DataType dtype,
                            ReduceOp op, double prescale, double postscale,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks);

// output = root's input, for every tensor; inputs of other ranks are not read.
// Data types do not matter. Hooks, world of one and errors as above; the root
// must have all inputs.
absl::Status FusedBroadcast(const FusionResources& resources, int root,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks);

}  // namespace hvdlite::collective
