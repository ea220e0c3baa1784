// Single-shot detection of objects in images, and what it is trained by.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// Boxes that predictions are relative to.
inline constexpr int64_t kSsdDefaultBoxes = 8732;

// A prediction for each default box.
struct SsdOutput {
  torch::Tensor offsets;  // [N, 4, 8732], from the default box; see SsdTargets
  torch::Tensor logits;   // [N, classes, 8732]
};

struct Ssd300Options {
  int64_t classes = 81;  // of COCO, and 0, the background
};

// SSD of Liu et al., "SSD: Single Shot MultiBox Detector" (ECCV 2016), for
// images of 300x300 pixels, with the backbone of MLPerf Training v0.5:
// ResNet-34 up to conv4, whose stride is 1. Six feature maps, of sides 38 to 1.
class Ssd300Impl : public torch::nn::Module {
 public:
  explicit Ssd300Impl(const Ssd300Options& options = {});

  // `images` [N, 3, 300, 300] float.
  SsdOutput forward(const torch::Tensor& images);

 private:
  const int64_t classes_;
  torch::nn::Sequential backbone_;
  std::vector<torch::nn::Sequential> reductions_;  // to the next feature map
  std::vector<torch::nn::Conv2d> offset_heads_;    // of each feature map
  std::vector<torch::nn::Conv2d> class_heads_;
};
TORCH_MODULE(Ssd300);

// The default boxes for COCO, [4, 8732]: x and y of the centre, width and
// height, as shares of the image's side; in the order of Ssd300's predictions.
torch::Tensor SsdDefaultBoxes();

// What Ssd300 should predict. The offsets of a box are those of the paper's
// equation 2, divided by their variances: (centre - default centre) / default
// size / 0.1 and log(size / default size) / 0.2.
struct SsdTargets {
  torch::Tensor offsets;  // [N, 4, 8732]
  torch::Tensor labels;   // [N, 8732] int64; 0: background
};

// Gives each default box the object that it overlaps most, if by half of their
// union, and each object at least the default box that overlaps it most (the
// paper's section 2.2). `boxes` [N, M, 4] as those of SsdDefaultBoxes, `labels`
// [N, M] int64, from 1 on.
SsdTargets MatchSsdTargets(const torch::Tensor& boxes,
                           const torch::Tensor& labels);

// The paper's equation 1: smooth L1 of the offsets at objects, and cross
// entropy at objects and the three times as many background boxes at which it
// is largest, over the number of objects; the mean over the images.
torch::Tensor SsdLoss(const SsdOutput& output, const SsdTargets& targets);

}  // namespace hvdlite::trainers
