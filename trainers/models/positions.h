// Encoding of positions in a sequence.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace hvdlite::trainers {

// Sinusoids of Vaswani et al., "Attention Is All You Need" (NeurIPS 2017),
// section 3.5, for positions 0 to `max_length`: [max_length + 1, width] float.
// Row p has sin(p / 10000^(2i / width)) in column 2i and the cosine of the same
// angle in column 2i + 1. Row 0 belongs to padding and is zero.
torch::Tensor SinusoidTable(int64_t max_length, int64_t width);

}  // namespace hvdlite::trainers
