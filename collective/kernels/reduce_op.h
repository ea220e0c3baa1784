// Reduction operations of the data plane.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace hvdlite::collective {

// The values travel between ranks: append only. An average is a sum whose
// result is scaled when it is unpacked. On bool, sum and max are logical or,
// product and min logical and. Integer sums and products wrap around. The
// minimum and the maximum of anything and NaN are NaN.
enum class ReduceOp : uint8_t { kSum = 0, kMin = 1, kMax = 2, kProduct = 3 };
inline constexpr int kNumReduceOps = 4;

absl::string_view NameOf(ReduceOp op);  // "sum", ...; or "unknown"

}  // namespace hvdlite::collective
