// What DistributedOptimizerOptions mean for the reduction of gradients.
#pragma once

#include <hvdlite/distributed_optimizer.h>

#include <memory>
#include <string>

#include "negotiation/world/world_state.h"
#include "torch_plugin/optimizer/gradient_reducer.h"
#include "torch_plugin/optimizer/named_parameters.h"

namespace hvdlite::internal {

// The options' name or the next of "optimizer0", "optimizer1", ... Throws
// c10::Error if this process is not in the process set.
std::string NamePrefix(World& world,
                       const DistributedOptimizerOptions& options);

// Throws c10::Error for what is not possible.
GradientReducerOptions ReducerOptions(
    std::shared_ptr<World> world, std::string name_prefix,
    const DistributedOptimizerOptions& options,
    const NamedParameters& parameters);

}  // namespace hvdlite::internal
