// Collectives of many tensors at once whose rows are distributed over the
// ranks: allgather, reducescatter, alltoall.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collective/fusion/fused_allreduce.h"
#include "collective/fusion/fusion.h"

namespace hvdlite::collective {

// All ranks pass as many tensors in the same order. Each rank's part of a chunk
// is at most a size()-th of the fusion buffer, but never less than 64 bytes. A
// world of one copies (and scales) without the buffer, and calls no hooks.
// Errors: InvalidArgument, before anything is communicated, when a span and its
// partition do not fit together; the communicator's first error. Outputs are
// then unspecified.

// output gets every rank's input: output_bytes[r] bytes from rank r, the same
// list on every rank. input_bytes is not used.
absl::Status FusedAllgather(const FusionResources& resources,
                            absl::Span<const PartitionedTensor> tensors,
                            const FusionHooks& hooks);

// output gets the reduction of this rank's part of `input`: input_bytes[r]
// bytes go to rank r, the same list on every rank. output_bytes is not used.
absl::Status FusedReduceScatter(const FusionResources& resources,
                                const Reduction& reduction,
                                absl::Span<const PartitionedTensor> tensors,
                                const FusionHooks& hooks);

// output gets a part of every rank's input: input_bytes[r] bytes go to rank r,
// output_bytes[r] come from it. The ranks' lists fit together.
absl::Status FusedAlltoall(const FusionResources& resources,
                           absl::Span<const PartitionedTensor> tensors,
                           const FusionHooks& hooks);

}  // namespace hvdlite::collective
