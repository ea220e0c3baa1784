// Mode: a subcommand of hvdlite_bench.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/hvdlite_bench/mpi_world.h"
#include "bench/hvdlite_bench/results.h"
#include "bench/hvdlite_bench/rounds.h"

namespace hvdlite::tools {

// Flags that all modes have, and what was found out before MPI started.
struct Run {
  std::string mode;
  int rounds = 20;
  int warmup = 3;
  bool details = false;  // every contender of every case
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
Mode TuneTableMode();
Mode ProbeMode();
Mode WorkloadsMode();

// A flag for the size of a float32 array, such as "64K" (base::ParseBytes):
// from 4 bytes to 8 GiB. `target` becomes `default_text` at once.
void AddSize(CLI::App& command, const std::string& name, int64_t& target,
             const std::string& default_text, const std::string& help);

// The sizes that a mode goes through: each twice the one before.
struct SizeRange {
  int64_t min_bytes = 0;
  int64_t max_bytes = 0;

  // Throws std::invalid_argument if there is none.
  std::vector<int64_t> Sizes() const;
};

// --min-bytes and --max-bytes.
void AddSizeRange(CLI::App& command, SizeRange& range,
                  const std::string& default_min,
                  const std::string& default_max);

// Results with everything but cases, and what MPI tells of the machine.
Results StartResults(const Run& run, int ranks);

// The same with that, and how the ranks are bound. Collective.
Results StartResults(const Run& run, const MpiWorld& world);

// The cases of `plans`, after the rounds of `run`. Collective.
std::vector<Case> Measure(const Run& run, const MpiWorld& world,
                          std::vector<Plan> plans);

// On rank 0 prints the results and writes Run::json, if it is set. Returns
// their exit code.
int Report(const Run& run, const Results& results, int rank);

}  // namespace hvdlite::tools
