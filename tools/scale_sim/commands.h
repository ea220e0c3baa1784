// What the program does: of each command its flags, and a function that runs
// it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "support/progress_line.h"
#include "tools/scale_sim/life.h"
#include "tools/scale_sim/network.h"
#include "tools/scale_sim/simulation.h"

namespace hvdlite::scale_sim {

// Flags for the links between nodes and within one.
struct LinkFlags {
  std::string network = "infiniband";
  LinkParameters within_node = SharedMemoryLink();
  // Instead of the preset's; negative: the preset's.
  LinkParameters between_nodes = {-1, -1, -1, -1};
};

// --network, --node-*-us and --net-*-us.
void AddLinkFlags(CLI::App& app, LinkFlags& flags);

// Sets the links of `network`.
void SetLinks(const LinkFlags& flags, NetworkParameters& network);

// How far a command is, on standard error: of standard output a table is made.
support::ProgressLine ProgressOf(const std::string& item,
                                 const std::string& items);

// scale_sim without a subcommand: what agreeing on the next batch costs in
// worlds of up to thousands of ranks, which run the real Negotiator.
struct NegotiationFlags {
  SimulationOptions simulation;
  std::vector<int> ranks = {2,   4,   8,    16,   32,   64,   128,
                            256, 512, 1024, 2048, 4096, 8192, 16384};
  std::vector<int> arities = {8};
  std::string topology = "tree";
  std::string workload = "training";
  int tensors = 161;
  std::string gradients;  // a file with others
  LinkFlags link;
  std::string json;
  std::string html;
  bool overwrite = false;
};

void AddNegotiationFlags(CLI::App& app, NegotiationFlags& flags);

// Returns the process's exit code.
int RunNegotiation(const NegotiationFlags& flags);

// scale_sim life: what the phases of a world's life cost its busiest rank.
struct LifeFlags {
  LifeOptions life = {.network = {.ranks_per_node = 48}, .measure_cpu = true};
  std::vector<int> ranks = {1, 64, 1024, 4096, 16384};
  bool warnings = false;
  LinkFlags link;
};

void AddLifeFlags(CLI::App& app, LifeFlags& flags);

// Returns the process's exit code.
int RunLife(const LifeFlags& flags);

}  // namespace hvdlite::scale_sim
