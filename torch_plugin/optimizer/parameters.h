// The parameters of an optimizer under their names, and which of their
// gradients are reduced together.
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

// The optimizer's parameters under their names, in the order of
// `named_parameters`, whose others are left out, as are integers and flags,
// which have no gradient. Throws c10::Error unless each is there exactly once
// and can be reduced.
NamedParameters ParametersOf(
    const torch::optim::Optimizer& optimizer,
    const torch::OrderedDict<std::string, at::Tensor>& named_parameters);

// Indices of the parameters that are reduced together. Parameters in no group
// are groups of their own. Throws c10::Error: a negative number of groups, an
// empty group, a tensor that is no parameter or given twice.
GroupedIndices GroupParameters(const GradientGroups& groups,
                               const NamedParameters& parameters);

}  // namespace hvdlite::internal
