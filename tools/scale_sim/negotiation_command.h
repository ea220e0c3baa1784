// scale_sim without a subcommand: what agreeing on the next batch costs in
// worlds of up to thousands of ranks, which run the real Negotiator.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/scale_sim/link_flags.h"
#include "tools/scale_sim/simulation.h"

namespace hvdlite::scale_sim {

struct NegotiationFlags {
  SimulationOptions simulation;
  std::vector<int> ranks = {2,   4,   8,    16,   32,   64,   128,
                            256, 512, 1024, 2048, 4096, 8192, 16384};
  std::vector<int> arities = {8};
  std::string topology = "tree";
  std::string workload = "training";
  int tensors = 161;
  LinkFlags link = {.network = "infiniband"};
  std::string json;
};

void AddNegotiationFlags(CLI::App& app, NegotiationFlags& flags);

// Returns the process's exit code.
int RunNegotiation(const NegotiationFlags& flags);

}  // namespace hvdlite::scale_sim
