// The flags that trainers share.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace hvdlite::trainers {

// How many samples a step has, as --batch-size-per-rank or --global-batch-size
// says.
struct BatchSize {
  enum class Of { kRank, kAllRanks };
  int64_t count = 0;
  Of of = Of::kRank;

  // On each of `ranks` ranks. Throws InputError if they cannot be dealt evenly.
  int64_t PerRank(int ranks) const;
  // On the rank that has most, where parts differ by one sample at most. Throws
  // InputError if some rank would have none.
  int64_t LargestPart(int ranks) const;
  // On all of them together.
  int64_t OfAllRanks(int ranks) const {
    return of == Of::kRank ? count * ranks : count;
  }

  bool operator==(const BatchSize&) const = default;
};

// --batch-size-per-rank, --batch-size, which is short for it, and
// --global-batch-size: one of them at most. `items` are what a batch has
// ("images").
void AddBatchSizeFlags(CLI::App& app, BatchSize& batch,
                       const std::string& items, const std::string& group);

// How a process computes; 0: LibTorch's defaults.
struct ComputeFlags {
  int threads = 0;
  int inter_op_threads = 0;
  bool no_onednn = false;

  bool operator==(const ComputeFlags&) const = default;
};

// What each means is in a trainer's --help.
struct RunFlags {
  int64_t epochs = 1;     // those before --resume included
  int64_t max_steps = 0;  // as epochs; 0: no limit

  std::string checkpoint = {};
  int64_t checkpoint_every = 1;         // epochs
  int64_t checkpoint_every_steps = 0;   // 0: never
  double checkpoint_every_minutes = 0;  // 0: never
  // -1: 1 where the launcher keeps commits, else 0, which is never.
  int64_t commit_every_steps = -1;
  std::string resume = {};

  std::string report = {};
  std::string report_html = {};
  bool overwrite = false;  // of these files
  bool check_data = false;
  uint64_t seed = 42;
  ComputeFlags compute = {};

  bool operator==(const RunFlags&) const = default;
};

// Those of a trainer that trains to an end.
void AddRunFlags(CLI::App& app, RunFlags& flags);

// --seed and how a process computes: the flags of every trainer.
void AddProcessFlags(CLI::App& app, uint64_t& seed, ComputeFlags& compute);

// All flags of a trainer as a JSON object: its `own`, likewise, the size of a
// batch and what has so many, and those of the run.
std::string SettingsText(const std::string& own, const BatchSize& batch,
                         const RunFlags& run);

}  // namespace hvdlite::trainers
