// Command line of train_synthetic.
#pragma once

#include <cstdint>
#include <string>

#include "tools/support/command_line.h"
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
  double lr = 0.01;
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
  bool check = false;
  int64_t instances = 1;
  ComputeFlags compute;

  bool trains() const { return !forward_only && task.model != "image_loading"; }
};

support::CommandLine<SyntheticFlags> ParseSyntheticFlags(
    int argc, const char* const* argv);

// Those that tell one benchmark from another, for its report.
Arguments ArgumentsOf(const SyntheticFlags& flags);

}  // namespace hvdlite::trainers
