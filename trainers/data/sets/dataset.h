// Images and labels for training and evaluation.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

struct Batch {
  torch::Tensor images;  // float [N, channels, side, side], contiguous
  torch::Tensor labels;  // int64 [N]
};

// A fixed number of labelled images.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;

  // The images with these indices (each in [0, size())), as they are seen in
  // that epoch. Several threads may call it at once.
  virtual Batch Load(const std::vector<int64_t>& indices, int64_t epoch) = 0;
};

}  // namespace hvdlite::trainers
