// Single-shot detection of objects in images, with its targets and loss.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

// The default boxes; predictions are relative to them.
inline constexpr int64_t kSsdDefaultBoxes = 8732;

// One prediction for each default box.
struct SsdOutput {
  torch::Tensor offsets;  // [N, 4, 8732], from default box; see SsdTargets
  torch::Tensor logits;   // [N, classes, 8732]
};

struct Ssd300Options {
  int64_t classes = 81;  // COCO's, and 0 for the background
};

// SSD of Liu et al., "SSD: Single Shot MultiBox Detector" (ECCV 2016), for
// images of 300x300 pixels, with the backbone of MLPerf Training v0.5:
// ResNet-34 up to conv4 with stride 1 there. It has six feature maps with sides
// from 38 to 1.
class Ssd300Impl : public torch::nn::Module {
 public:
  explicit Ssd300Impl(const Ssd300Options& options = {});

  // `images` is [N, 3, 300, 300] float.
  SsdOutput forward(const torch::Tensor& images);

 private:
  const int64_t classes_;
  torch::nn::Sequential backbone_;
  std::vector<torch::nn::Sequential> reductions_;  // to the next feature map
  std::vector<torch::nn::Conv2d> offset_heads_;    // for each feature map
  std::vector<torch::nn::Conv2d> class_heads_;
};
TORCH_MODULE(Ssd300);

// Returns the default boxes for COCO, [4, 8732]: x and y of the centre, width
// and height, as fractions of the image's side, in the order of Ssd300's
// predictions.
torch::Tensor SsdDefaultBoxes();

// The targets of Ssd300. The offsets of a box are those of the paper's equation
// 2, divided by their variances: (centre - default centre) / default size / 0.1
// and log(size / default size) / 0.2.
struct SsdTargets {
  torch::Tensor offsets;  // [N, 4, 8732]
  torch::Tensor labels;   // [N, 8732] int64; 0: background
};

// Assigns objects to default boxes (the paper's section 2.2). Each default box
// gets the object with the largest overlap, if that is at least half of their
// union. Each object gets at least the default box that overlaps it most.
// `boxes` [N, M, 4] are in the format of SsdDefaultBoxes; `labels` [N, M] are
// int64, from 1 on.
SsdTargets MatchSsdTargets(const torch::Tensor& boxes,
                           const torch::Tensor& labels);

// The paper's equation 1, averaged over the images. It adds the smooth L1 loss
// of the offsets at objects and the cross entropy at objects and at three times
// as many background boxes, those with the largest cross entropy. The sum is
// divided by the number of objects.
torch::Tensor SsdLoss(const SsdOutput& output, const SsdTargets& targets);

}  // namespace hvdlite::trainers
