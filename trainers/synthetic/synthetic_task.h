// What train_synthetic computes: a model and one random batch for it.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/MemoryFormat.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hvdlite::trainers {

struct SyntheticTask {
  // Null where nothing is trained.
  std::shared_ptr<torch::nn::Module> model;
  // Computes the mean loss of the batch, a scalar, anew.
  std::function<torch::Tensor()> loss;
};

// Sizes of 0 are those of the model's publication.
struct SyntheticTaskOptions {
  std::string model = "resnet50";
  int64_t batch_size = 32;  // per rank
  int64_t image_size = 0;   // pixels a side
  int64_t classes = 0;
  int64_t sequence_length = 0;
  int64_t width = 0;                 // channels of the narrowest convolution
  int64_t hidden = 0;                // width of the hidden linear layers
  std::string data_format = "NCHW";  // or "NHWC"
  uint64_t seed = 0;                 // of the batch
};

// The generator of a task's batch.
at::Generator GeneratorOf(const SyntheticTaskOptions& options);

// `size`, or where that is 0, `published`.
int64_t SizeOr(int64_t size, int64_t published);

at::MemoryFormat MemoryFormatOf(const SyntheticTaskOptions& options);

}  // namespace hvdlite::trainers
