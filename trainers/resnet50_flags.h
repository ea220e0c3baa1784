// Command line of train_resnet50.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/command_line.h"
#include "trainers/run_flags.h"

namespace hvdlite::trainers {

// train_resnet50 --help explains the flags.
struct ResNet50Flags {
  // The model.
  std::string arch = "resnet50";
  std::string stem = "auto";
  bool zero_init_residual = false;
  std::string memory_format = "nchw";
  bool bf16 = false;

  // The data: either data_dir or synthetic.
  std::string data_dir;
  bool synthetic = false;
  int64_t synthetic_images = 1280;
  int64_t image_size = 0;  // 0: 224, or 32 for CIFAR-10
  int64_t classes = 1000;
  std::string augmentation = "auto";
  std::vector<std::string> train_domains;
  std::vector<std::string> val_domains;
  bool skip_unreadable = false;
  int workers = 0;

  BatchSize batch_size = {.count = 32, .of = BatchSize::Of::kRank};
  int64_t eval_every = 1;

  // The optimizer.
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

  // True for the first layers for small images, as chosen by --stem or, with
  // auto, by `image_size` in pixels a side.
  bool has_small_image_stem() const;
  // True if gradients, losses and buffers are averaged over the ranks.
  bool averages() const { return !no_sync && !barrier_only; }

  bool operator==(const ResNet50Flags&) const = default;
};

support::CommandLine<ResNet50Flags> ParseResNet50Flags(int argc,
                                                       const char* const* argv);

// Formats the flags as a JSON object.
std::string ToJson(const ResNet50Flags& flags);

}  // namespace hvdlite::trainers
