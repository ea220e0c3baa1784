// Command line of train_mnist.
#pragma once

#include <cstdint>
#include <string>

#include "tools/support/command_line.h"
#include "trainers/run_flags.h"

namespace hvdlite::trainers {

// What each means is in train_mnist --help.
struct MnistFlags {
  std::string data_dir;
  int64_t batch_size = 128;  // of all ranks together
  double lr = 0.01;
  double momentum = 0.5;
  double dropout = 0.5;
  bool manual = false;
  bool quiet = false;
  RunFlags run = {.epochs = 10, .seed = 1234};
};

CommandLine<MnistFlags> ParseMnistFlags(int argc, const char* const* argv);

// As a JSON object.
std::string ToJson(const MnistFlags& flags);

}  // namespace hvdlite::trainers
