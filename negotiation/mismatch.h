// The error that ranks get which disagree about a tensor.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "negotiation/request.h"

namespace hvdlite::negotiation {

// What some ranks submitted under a name.
struct Variant {
  Request request;
  std::vector<int> ranks;
};

// For at least two variants that differ: names the tensor, the first property
// that differs, its value on each side with the ranks, and the remedy.
std::string DescribeMismatch(absl::Span<const Variant> variants);

}  // namespace hvdlite::negotiation
