// Memory layout of a model's weights.
#pragma once

#include <c10/core/MemoryFormat.h>
#include <torch/nn/module.h>

namespace hvdlite::trainers {

// Lays out all four-dimensional parameters in `format` (Contiguous: NCHW,
// ChannelsLast: NHWC). The parameters stay the same tensors, so optimizers and
// hooks made before remain valid; gradients that exist keep their layout.
void SetMemoryFormat(torch::nn::Module& model, at::MemoryFormat format);

}  // namespace hvdlite::trainers
