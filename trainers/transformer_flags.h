// Command line of train_transformer.
#pragma once

#include <cstdint>
#include <string>

#include "support/command_line.h"
#include "trainers/run_flags.h"

namespace hvdlite::trainers {

// train_transformer --help explains the flags.
struct TransformerFlags {
  std::string task = "pssp";
  std::string data_dir;  // for pssp
  std::string text;      // for lm
  int64_t context = 256;

  int64_t layers = 2;
  int64_t d_model = 256;
  int64_t d_inner = 512;
  int64_t heads = 8;
  int64_t d_k = 64;
  double dropout = 0.5;
  double attention_dropout = 0.1;  // for pssp
  bool bf16 = false;

  BatchSize batch_size = {.count = 20, .of = BatchSize::Of::kAllRanks};
  std::string deal = "length";  // or "random"
  int64_t warmup_steps = 4000;
  double lr_factor = 1;
  double smoothing = 0;

  bool no_test = false;
  bool profile = false;
  RunFlags run = {.epochs = 100};
};

support::CommandLine<TransformerFlags> ParseTransformerFlags(
    int argc, const char* const* argv);

// Formats the flags as a JSON object.
std::string ToJson(const TransformerFlags& flags);

}  // namespace hvdlite::trainers
