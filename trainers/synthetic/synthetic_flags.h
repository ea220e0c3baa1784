// Command line of train_synthetic.
#pragma once

#include <cstdint>
#include <string>

#include "support/command_line.h"
#include "trainers/benchmark/benchmark_report.h"
#include "trainers/run_flags.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {

// train_synthetic --help explains the flags.
struct SyntheticFlags {
  // Its seed is the same on all ranks. Its batch size is set from `batch_size`.
  SyntheticTaskOptions task;
  BatchSize batch_size = {.count = 32, .of = BatchSize::Of::kRank};
  bool forward_only = false;
  bool gradients_only = false;
  bool bf16 = false;
  std::string optimizer = "sgd";
  double lr = 0.01;
  double clip_norm = 0;  // 0: no limit
  bool fp16_allreduce = false;
  bool use_adasum = false;
  bool views = false;

  int64_t num_warmup_batches = 10;
  int64_t num_batches = 100;
  int64_t display_every = 10;
  int64_t repeat = 0;  // 0: time num_batches
  int64_t number = 10;
  int64_t skip = 10;

  std::string report;
  std::string name;  // benchmark; empty: the model's name
  bool check = false;
  int64_t instances = 1;
  bool share_memory = false;
  int64_t instance = 0;  // index of this process among the instances
  ComputeFlags compute;

  bool trains() const {
    return !forward_only && !gradients_only && task.model != "image_loading";
  }
  const std::string& benchmark() const {
    return name.empty() ? task.model : name;
  }
};

support::CommandLine<SyntheticFlags> ParseSyntheticFlags(
    int argc, const char* const* argv);

// The file to which instance `instance` of `--report path` appends: NAME.json
// in its own subdirectory of a directory, or FILE_I.json for FILE.json.
std::string ReportOfInstance(const std::string& path, int64_t instance);

// The arguments that identify a benchmark in its report.
Arguments ArgumentsOf(const SyntheticFlags& flags);

}  // namespace hvdlite::trainers
