// Checks of the arguments of a collective call that need no other rank.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collective/data_type.h"
#include "collective/reduce_op.h"

namespace hvdlite::collective {

// InvalidArgument unless `dtype` and `op` are known and `buffer` holds whole,
// aligned elements.
absl::Status CheckAllreduceArguments(absl::Span<const std::byte> buffer,
                                     DataType dtype, ReduceOp op);

// InvalidArgument unless `root` is one of `size` ranks.
absl::Status CheckBroadcastArguments(int root, int size);

}  // namespace hvdlite::collective
