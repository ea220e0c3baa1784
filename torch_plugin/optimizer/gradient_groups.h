// Which gradients are reduced together.
#pragma once

#include <hvdlite/distributed_optimizer.h>

#include "torch_plugin/optimizer/even_split.h"
#include "torch_plugin/optimizer/named_parameters.h"

namespace hvdlite::internal {

// Indices of the parameters that are reduced together. Parameters in no group
// are groups of their own. Throws c10::Error: a negative number of groups, an
// empty group, a tensor that is no parameter or given twice.
GroupedIndices GroupParameters(const GradientGroups& groups,
                               const NamedParameters& parameters);

}  // namespace hvdlite::internal
