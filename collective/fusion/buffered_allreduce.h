// Allreduce of many tensors by way of a buffer.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collective/communicator.h"
#include "collective/fusion/fused_rounds.h"
#include "collective/fusion/fusion.h"
#include "collective/fusion/reduction.h"

namespace hvdlite::collective {

// FusedAllreduce for communicators that reduce one flat buffer: packs as many
// elements into `buffer` as fit in their wire type, reduces them there, unpacks
// them, and so on. Arguments have been checked.
absl::Status BufferedAllreduce(Communicator& communicator,
                               absl::Span<std::byte> buffer,
                               const Reduction& reduction,
                               absl::Span<const FusedTensor> tensors,
                               PhaseTimer& timer);

}  // namespace hvdlite::collective
