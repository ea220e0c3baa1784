// The control channel of a world whose nodes have channels of their own.
#pragma once

#include <memory>

#include "absl/types/span.h"
#include "negotiation/control_channel.h"

namespace hvdlite::negotiation {

// Messages between ranks of one node go through `node`, where they are numbered
// as in the order of their ranks; all others go through `world`. `node_of_rank`
// tells the node of every rank of the world. `node` may be null where a rank is
// alone on its node, `world` where there is one node only.
//
// A world channel that has to be polled makes the whole channel one that has to
// be, unless it is not needed.
std::unique_ptr<ControlChannel> CreateRoutedChannel(
    int world_rank, absl::Span<const int> node_of_rank,
    std::unique_ptr<ControlChannel> node,
    std::unique_ptr<ControlChannel> world);

}  // namespace hvdlite::negotiation
