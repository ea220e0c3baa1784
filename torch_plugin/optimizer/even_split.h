// Splits a list into groups of about equal size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace hvdlite::internal {

// Indices of a list; each is in one group exactly.
using GroupedIndices = std::vector<std::vector<size_t>>;

// Splits `sizes` into `groups` consecutive groups (as many as there are sizes,
// if those are fewer), none of them empty, so that the sum of the largest is as
// small as possible.
GroupedIndices SplitEvenly(absl::Span<const int64_t> sizes, int64_t groups);

}  // namespace hvdlite::internal
