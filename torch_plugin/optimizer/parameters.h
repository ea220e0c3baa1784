// The named parameters of an optimizer, and the groups in which their gradients
// are reduced.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/distributed_optimizer.h>
#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>

#include <string>
#include <utility>
#include <vector>

#include "torch_plugin/optimizer/even_split.h"

namespace hvdlite::internal {

using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

// Returns the optimizer's parameters with their names, in the order of
// `named_parameters`. Leaves out other tensors of `named_parameters`, and
// integers and flags, which have no gradient. Throws c10::Error unless each
// parameter is there exactly once and can be reduced.
NamedParameters ParametersOf(
    const torch::optim::Optimizer& optimizer,
    const torch::OrderedDict<std::string, at::Tensor>& named_parameters);

// Returns the indices of the parameters that are reduced together. A parameter
// in no group gets a group of its own. Throws c10::Error for a negative number
// of groups, an empty group, and a tensor that is no parameter or is given
// twice.
GroupedIndices GroupParameters(const GradientGroups& groups,
                               const NamedParameters& parameters);

}  // namespace hvdlite::internal
