// What the collectives over many tensors have in common: tensors are packed
// into the fusion buffer, communicated and unpacked, chunk by chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion_buffer.h"

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

// One tensor of a batch whose rows are distributed over the ranks. A partition
// lists the bytes of each rank's part; the parts lie one after the other in
// rank order.
struct PartitionedTensor {
  absl::Span<const std::byte> input;
  absl::Span<std::byte> output;      // does not overlap `input`
  std::vector<size_t> input_bytes;   // partition of `input`; see each function
  std::vector<size_t> output_bytes;  // partition of `output`
};

enum class FusionPhase { kPack, kCommunicate, kUnpack };

// What the caller wants to know and do while a batch runs; both may be empty.
struct FusionHooks {
  // A phase of one chunk is over.
  std::function<void(FusionPhase phase, int64_t chunk, int64_t start_ns,
                     int64_t end_ns)>
      on_phase = {};
  // How a batch is reduced, where the communicator chooses among algorithms;
  // the last call counts.
  std::function<void(absl::string_view algorithm)> on_algorithm = {};
  // Called after every chunk but the last; must not use the communicator. An
  // error ends the batch.
  std::function<absl::Status()> between_chunks = {};
  // The same, now and then while this rank waits for others inside a chunk,
  // where the communicator does not block in a library of its own.
  std::function<absl::Status()> while_waiting = {};
};

// A communicator's fusion buffer and the clock that times the phases.
struct FusionResources {
  Communicator& communicator;
  FusionBuffer& buffer;  // its size is the chunk size
  const base::Clock& clock;
};

}  // namespace hvdlite::collective
