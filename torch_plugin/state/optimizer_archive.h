// Optimizers as bytes, in LibTorch's archives.
#pragma once

#include <torch/optim/optimizer.h>

#include <string>

namespace hvdlite::internal {

// What two optimizers have in common that can exchange their state: type and
// parameters' shapes. "torch::optim::SGD with parameter groups ([2, 3], [3])
// ([4])".
std::string Describe(const torch::optim::Optimizer& optimizer);

// State (such as momentum) and options (such as the learning rate). Drops what
// the optimizer does not need to continue and LibTorch cannot write. Throws
// what LibTorch does.
std::string Serialized(torch::optim::Optimizer& optimizer);

// Replaces state and options; `archive` is of an optimizer with the same
// description. Throws what LibTorch does; the optimizer is then unspecified.
void Load(const std::string& archive, torch::optim::Optimizer& optimizer);

}  // namespace hvdlite::internal
