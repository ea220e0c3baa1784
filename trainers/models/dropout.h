// How much a model drops out.
#pragma once

#include <torch/nn/module.h>

namespace hvdlite::trainers {

// Sets the share of values that every Dropout and Dropout2d of the model sets
// to zero in training; 0: none.
void SetDropout(torch::nn::Module& model, double share);

}  // namespace hvdlite::trainers
