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

// The flags of all modes, and facts from before MPI's start.
struct Run {
  std::string mode;
  int rounds = 20;
  int warmup = 3;
  bool details = false;  // print every implementation of every case
  std::string json;
  std::map<std::string, std::string> machine;
  int* argc = nullptr;
  char*** argv = nullptr;
};

struct Mode {
  std::string name;
  std::string description;
  // Adds the mode's own flags to its subcommand and returns the function that
  // runs it. That function returns the process's exit code; an exception ends
  // all ranks.
  std::function<std::function<int(const Run&)>(CLI::App& command)> add;
};

// The modes that need LibTorch; none in a build without it.
std::vector<Mode> TorchModes();

Mode SweepMode();
Mode TuneTableMode();
Mode ProbeMode();
Mode WorkloadsMode();

// Adds a flag for the size of a float32 array, such as "64K"
// (base::ParseBytes), from 4 bytes to 8 GiB. Sets `target` to `default_text`.
void AddSize(CLI::App& command, const std::string& name, int64_t& target,
             const std::string& default_text, const std::string& help);

// The sizes of a mode; each is twice the one before.
struct SizeRange {
  int64_t min_bytes = 0;
  int64_t max_bytes = 0;

  // Throws std::invalid_argument if there is none.
  std::vector<int64_t> Sizes() const;
};

// Adds --min-bytes and --max-bytes.
void AddSizeRange(CLI::App& command, SizeRange& range,
                  const std::string& default_min,
                  const std::string& default_max);

// Returns results without cases, with the flags and the facts about the
// machine.
Results StartResults(const Run& run, int ranks);

// The same with facts from MPI and the binding of the ranks. Collective.
Results StartResults(const Run& run, const MpiWorld& world);

// Runs the rounds of `run` for `plans` and returns their cases. Collective.
std::vector<Case> Measure(const Run& run, const MpiWorld& world,
                          std::vector<Plan> plans);

// Prints the results on rank 0 and writes Run::json if it is set. Returns the
// exit code.
int Report(const Run& run, const Results& results, int rank);

}  // namespace hvdlite::tools
