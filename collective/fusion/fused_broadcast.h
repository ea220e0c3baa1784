// Broadcast of many tensors at once.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collective/fusion/fusion.h"

namespace hvdlite::collective {

// output = root's input, for every tensor; inputs of other ranks are not read.
// Data types do not matter. All ranks pass tensors of the same sizes in the
// same order. A world of one copies, and calls no hooks. Errors:
// InvalidArgument, before anything is communicated, when the root's input does
// not have its output's size; the communicator's first error.
absl::Status FusedBroadcast(const FusionResources& resources, int root,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks);

}  // namespace hvdlite::collective
