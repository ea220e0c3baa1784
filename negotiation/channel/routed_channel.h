// The control channel of a world whose nodes have channels of their own.
#pragma once

#include <memory>

#include "negotiation/channel/control_channel.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {

// For the tree of `layout`. Messages between ranks of one node go through
// `node`, where they are numbered as in the order of their ranks; all others go
// through `world`. `node` may be null where a rank is alone on its node,
// `world` where nothing is sent to other nodes: where there are none, and on
// ranks that do not lead theirs. Holds nothing per rank but the layout, which
// it shares.
//
// A world channel that has to be polled makes the whole channel one that has to
// be, unless it is not needed.
std::unique_ptr<ControlChannel> CreateRoutedChannel(
    int world_rank, std::shared_ptr<const WorldLayout> layout,
    std::unique_ptr<ControlChannel> node,
    std::unique_ptr<ControlChannel> world);

}  // namespace hvdlite::negotiation
