// The error that ranks get which do not agree about a tensor.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "negotiation/rank_list.h"
#include "negotiation/request.h"

namespace hvdlite::negotiation {

// What some ranks submitted under a name.
struct Variant {
  Request request;
  RankRuns ranks;
};

// Whether the ranks can go on: they submitted the same, and nobody refuses.
bool Agree(absl::Span<const Variant> variants);

// For variants that do not agree: names the tensor, the first property that
// differs, its value on each side with the ranks, and the remedy; or the ranks
// that refuse and why.
std::string DescribeMismatch(absl::Span<const Variant> variants);

}  // namespace hvdlite::negotiation
