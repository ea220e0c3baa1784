// The data set of the examples in docs/getting_started.md, and its includes;
// see guide_collectives.cc for "[guide]" and "[end]".
#pragma once

// [guide]
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <iostream>
#include <memory>
#include <vector>

// Points of the plane, and the sum of their coordinates plus 1.
class Points : public torch::data::datasets::Dataset<Points> {
 public:
  torch::data::Example<> get(size_t index) override { return points_[index]; }
  torch::optional<size_t> size() const override { return points_.size(); }

 private:
  static std::vector<torch::data::Example<>> Draw() {
    torch::manual_seed(1);  // the same points on every rank
    std::vector<torch::data::Example<>> points;
    for (int i = 0; i < 1000; ++i) {
      const torch::Tensor x = torch::randn({2});
      points.emplace_back(x, x.sum(0, /*keepdim=*/true) + 1);
    }
    return points;
  }
  std::vector<torch::data::Example<>> points_ = Draw();
};
// [end]
