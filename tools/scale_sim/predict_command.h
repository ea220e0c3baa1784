// scale_sim predict: epochs with Horovod, as fitted to a table or as flags
// describe them, and what hvdlite would reach under stated assumptions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/scale_sim/fit_command.h"
#include "tools/scale_sim/prediction.h"

namespace hvdlite::scale_sim {

struct PredictFlags {
  FitFlags fit;  // without a table nothing is fitted
  int images = 50000;
  int batch_per_node = 512;
  int cores_per_node = 48;
  std::vector<int> nodes = {1, 2, 4, 8, 16, 32, 64, 128, 1024, 8192};
  HvdliteAssumptions assumptions;
  std::string core = "own";
  bool one_level = false;
  bool no_overlap = false;
  std::string algorithm;             // empty: the fit's
  double software_ns_per_byte = -1;  // negative: the fit's
};

void AddPredictFlags(CLI::App& app, PredictFlags& flags);

// Returns the process's exit code.
int RunPredict(const PredictFlags& flags);

}  // namespace hvdlite::scale_sim
