// scale_sim life: what the phases of a world's life cost its busiest rank.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "tools/scale_sim/life.h"
#include "tools/scale_sim/link_flags.h"

namespace hvdlite::scale_sim {

struct LifeFlags {
  LifeOptions life = {.network = {.ranks_per_node = 48}, .measure_cpu = true};
  std::vector<int> ranks = {1, 64, 1024, 4096, 16384};
  bool warnings = false;
  LinkFlags link = {.network = "infiniband"};
};

void AddLifeFlags(CLI::App& app, LifeFlags& flags);

// Returns the process's exit code.
int RunLife(const LifeFlags& flags);

}  // namespace hvdlite::scale_sim
