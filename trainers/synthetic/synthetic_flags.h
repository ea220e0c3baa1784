// Command line of train_synthetic.
#pragma once

#include <cstdint>
#include <string>

#include "support/command_line.h"
#include "trainers/benchmark/benchmark_report.h"
#include "trainers/run_flags.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {

// What each means is in train_synthetic --help.
struct SyntheticFlags {
  // Its seed is the same on all ranks, and its batch that of `batch_size`.
  SyntheticTaskOptions task;
  BatchSize batch_size = {.count = 32, .of = BatchSize::Of::kRank};
  bool forward_only = false;
  bool gradients_only = false;
  bool bf16 = false;
  std::string optimizer = "sgd";
  double lr = 0.01;
  double clip_norm = 0;  // 0: as long as it is
  bool fp16_allreduce = false;
  bool use_adasum = false;
  bool views = false;

  int64_t num_warmup_batches = 10;
  int64_t num_batches = 100;
  int64_t display_every = 10;
  int64_t repeat = 0;  // 0: no observations, but num_batches
  int64_t number = 10;
  int64_t skip = 10;

  std::string report;
  std::string name;  // of the benchmark; empty: the model's
  bool check = false;
  int64_t instances = 1;
  bool share_memory = false;
  int64_t instance = 0;  // of those, which this process is
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

// The file that instance `instance` of `--report path` appends to: a folder's
// NAME.json, of each instance's folder if there are several, or FILE_I.json of
// FILE.json.
std::string ReportOfInstance(const std::string& path, int64_t instance);

// Those that tell one benchmark from another, for its report.
Arguments ArgumentsOf(const SyntheticFlags& flags);

}  // namespace hvdlite::trainers
