// Flags for the links between nodes and within one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/scale_sim/network.h"

namespace hvdlite::scale_sim {

struct LinkFlags {
  std::string network;
  LinkParameters within_node = SharedMemoryLink();
  // Instead of the preset's; negative: the preset's.
  LinkParameters between_nodes = {-1, -1, -1, -1};
};

// --network, whose default is `flags.network`, --node-*-us and --net-*-us.
void AddLinkFlags(CLI::App& app, LinkFlags& flags);

LinkParameters BetweenNodes(const LinkFlags& flags);

}  // namespace hvdlite::scale_sim
