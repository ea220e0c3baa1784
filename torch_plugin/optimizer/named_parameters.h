// NamedParameters: the parameters of an optimizer under their names.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>

#include <string>
#include <utility>
#include <vector>

namespace hvdlite::internal {

using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

// The optimizer's parameters under their names, in the order of
// `named_parameters`, whose others are left out, as are integers and flags,
// which have no gradient. Throws c10::Error unless each is there exactly once
// and can be reduced.
NamedParameters ParametersOf(
    const torch::optim::Optimizer& optimizer,
    const torch::OrderedDict<std::string, at::Tensor>& named_parameters);

}  // namespace hvdlite::internal
