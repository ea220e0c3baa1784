// Flags that the trainers share.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace hvdlite::trainers {

// The number of samples per step, given by --batch-size-per-rank or
// --global-batch-size.
struct BatchSize {
  enum class Of { kRank, kAllRanks };
  int64_t count = 0;
  Of of = Of::kRank;

  // Samples on each of `ranks` ranks. Throws InputError if the division has a
  // remainder.
  int64_t PerRank(int ranks) const;
  // Samples on the rank with the most, if shares differ by at most one sample.
  // Throws InputError if some rank would have none.
  int64_t LargestPart(int ranks) const;
  // Samples on all ranks together.
  int64_t OfAllRanks(int ranks) const {
    return of == Of::kRank ? count * ranks : count;
  }

  bool operator==(const BatchSize&) const = default;
};

// Adds --batch-size-per-rank, its short form --batch-size, and
// --global-batch-size, which exclude each other. `items` names the samples in
// the help ("Images").
void AddBatchSizeFlags(CLI::App& app, BatchSize& batch,
                       const std::string& items, const std::string& group);

// Threads and kernels of a process; 0: LibTorch's defaults.
struct ComputeFlags {
  int threads = 0;
  int inter_op_threads = 0;
  bool no_onednn = false;

  bool operator==(const ComputeFlags&) const = default;
};

// A trainer's --help explains the flags.
struct RunFlags {
  int64_t epochs = 1;     // including those before --resume
  int64_t max_steps = 0;  // likewise; 0: no limit

  std::string checkpoint = {};
  int64_t checkpoint_every = 1;         // epochs
  int64_t checkpoint_every_steps = 0;   // 0: never
  double checkpoint_every_minutes = 0;  // 0: never
  // -1: 1 if the launcher has a commit store, else 0. 0: never.
  int64_t commit_every_steps = -1;
  std::string resume = {};

  std::string report = {};
  std::string report_html = {};
  bool overwrite = false;  // replace existing output files
  bool check_data = false;
  uint64_t seed = 42;
  ComputeFlags compute = {};

  bool operator==(const RunFlags&) const = default;
};

// Adds the flags of a training.
void AddRunFlags(CLI::App& app, RunFlags& flags);

// Adds --seed and the flags of ComputeFlags, which every trainer has.
void AddProcessFlags(CLI::App& app, uint64_t& seed, ComputeFlags& compute);

// Returns all flags of a trainer as a JSON object: `own` (a JSON object too),
// the batch size, and the flags of the run.
std::string SettingsText(const std::string& own, const BatchSize& batch,
                         const RunFlags& run);

}  // namespace hvdlite::trainers
