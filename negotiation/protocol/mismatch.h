// The error that ranks get which do not agree about a tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "negotiation/protocol/rank_list.h"
#include "negotiation/protocol/request.h"

namespace hvdlite::negotiation {

// What some ranks submitted under a name.
struct Variant {
  Request request;
  RankRuns ranks;
  uint32_t step = 0;  // see Operation
};

// Whether the ranks can go on: they submitted the same, and nobody refuses.
bool Agree(absl::Span<const Variant> variants);

// For variants that do not agree: names the tensor, the first property that
// differs, its value on each side with the ranks, and the remedy; or the ranks
// that refuse and why.
std::string DescribeMismatch(absl::Span<const Variant> variants);

// The training step that all ranks go on with, where they are in different
// ones; else 0.
uint32_t NextStep(absl::Span<const Variant> variants);

}  // namespace hvdlite::negotiation
