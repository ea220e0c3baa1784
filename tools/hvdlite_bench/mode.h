// Mode: a subcommand of hvdlite_bench.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/hvdlite_bench/mpi_world.h"
#include "tools/hvdlite_bench/results.h"

namespace hvdlite::tools {

// Flags that all modes have, and what was found out before MPI started.
struct Run {
  std::string mode;
  int rounds = 20;
  int warmup = 3;
  std::string json;
  std::map<std::string, std::string> machine;
  int* argc = nullptr;
  char*** argv = nullptr;
};

struct Mode {
  std::string name;
  std::string description;
  // Adds the mode's own flags to its subcommand, and returns what runs it. That
  // returns the process's exit code, and throws what ends all ranks.
  std::function<std::function<int(const Run&)>(CLI::App& command)> add;
};

// Those that need LibTorch; none in a build without it.
std::vector<Mode> TorchModes();

Mode SweepMode();
Mode ProbeMode();
Mode WorkloadsMode();

// Results with everything but notes and cases. Collective.
Results StartResults(const Run& run, const MpiWorld& world);

// On rank 0 prints the results and writes Run::json, if it is set. Returns the
// exit code: 1 if a result was wrong.
int Report(const Run& run, const Results& results, int rank);

}  // namespace hvdlite::tools
