// Command line of train_resnet50.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/command_line.h"
#include "trainers/run_flags.h"

namespace hvdlite::trainers {

// What each means is in train_resnet50 --help.
struct ResNet50Flags {
  // Model.
  std::string arch = "resnet50";
  std::string stem = "auto";
  bool zero_init_residual = false;
  std::string memory_format = "nchw";
  bool bf16 = false;

  // Data: one of data_dir and synthetic.
  std::string data_dir;
  bool synthetic = false;
  int64_t synthetic_images = 1280;
  int64_t image_size = 0;  // 0: the data's own, or 224
  int64_t classes = 1000;
  std::string augmentation = "auto";
  std::vector<std::string> train_domains;
  std::vector<std::string> val_domains;
  bool skip_unreadable = false;
  int workers = 0;

  BatchSize batch_size = {.count = 32, .of = BatchSize::Of::kRank};
  int64_t eval_every = 1;

  // Optimizer.
  double lr = 0.0125;
  std::string lr_scaling = "linear";
  double rescaling_epochs = 0;
  double momentum = 0.9;
  double weight_decay = 5e-5;
  bool nesterov = false;
  double warmup_epochs = 5;
  std::vector<double> lr_steps = {30, 60, 80};
  double lr_gamma = 0.1;

  // The run.
  RunFlags run;
  int64_t log_interval = 10;
  bool no_sync = false;
  bool barrier_only = false;

  // Whether the network begins as for images of `image_size` pixels a side,
  // unless --stem says how.
  bool has_small_image_stem() const;
  // Whether gradients, losses and buffers are averaged over the ranks.
  bool averages() const { return !no_sync && !barrier_only; }

  bool operator==(const ResNet50Flags&) const = default;
};

support::CommandLine<ResNet50Flags> ParseResNet50Flags(int argc,
                                                       const char* const* argv);

// As a JSON object.
std::string ToJson(const ResNet50Flags& flags);

}  // namespace hvdlite::trainers
