#include "trainers/models/detection_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "trainers/models/resnet.h"

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

constexpr double kImageSide = 300;

// One feature map with the default boxes of each of its cells: two squares, and
// two boxes for each of `ratios` (width to height, and the inverse).
struct FeatureMap {
  int64_t side;
  int64_t channels;
  double step;       // pixels between the centres of cells
  double size;       // of the small square, pixels
  double next_size;  // the large square's size is the geometric mean of both
  std::vector<double> ratios;

  int64_t boxes() const { return 2 + 2 * std::ssize(ratios); }
};

const std::vector<FeatureMap>& FeatureMaps() {
  static const std::vector<FeatureMap> maps = {
      {38, 256, 8, 21, 45, {2}},      {19, 512, 16, 45, 99, {2, 3}},
      {10, 512, 32, 99, 153, {2, 3}}, {5, 256, 64, 153, 207, {2, 3}},
      {3, 256, 100, 207, 261, {2}},   {1, 256, 300, 261, 315, {2}},
  };
  return maps;
}

// From feature map `from` to the next one: first fewer channels, then fewer
// cells.
nn::Sequential MakeReduction(const FeatureMap& from, const FeatureMap& to) {
  const int64_t narrow = to.channels / 2;
  nn::Conv2dOptions fewer(narrow, to.channels, 3);
  if (to.side >= 5) fewer.stride(2).padding(1);
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(from.channels, narrow, 1)),
                        nn::ReLU(), nn::Conv2d(fewer), nn::ReLU());
}

nn::Conv2d MakeHead(const FeatureMap& map, int64_t values) {
  return nn::Conv2d(
      nn::Conv2dOptions(map.channels, map.boxes() * values, 3).padding(1));
}

void InitialiseXavier(nn::Module& module) {
  for (const torch::Tensor& parameter : module.parameters()) {
    if (parameter.dim() > 1) nn::init::xavier_uniform_(parameter);
  }
}

// Width and height of a cell's boxes in pixels.
std::vector<std::array<double, 2>> BoxSizes(const FeatureMap& map) {
  const double large = std::sqrt(map.size * map.next_size);
  std::vector<std::array<double, 2>> sizes = {{map.size, map.size},
                                              {large, large}};
  for (const double ratio : map.ratios) {
    const double root = std::sqrt(ratio);
    sizes.push_back({map.size * root, map.size / root});
    sizes.push_back({map.size / root, map.size * root});
  }
  return sizes;
}

// Converts centres and sizes [..., 4, K] to lower and upper corners, each [...,
// 2, K].
std::array<torch::Tensor, 2> Corners(const torch::Tensor& boxes) {
  const torch::Tensor centres = boxes.narrow(-2, 0, 2);
  const torch::Tensor halves = boxes.narrow(-2, 2, 2) / 2;
  return {centres - halves, centres + halves};
}

torch::Tensor Areas(const torch::Tensor& sides) {
  return sides.clamp_min(0).prod(-2);
}

// Returns the intersection over union of the boxes [4, M] with the default
// boxes: [M, 8732].
torch::Tensor Overlaps(const torch::Tensor& boxes,
                       const torch::Tensor& defaults) {
  const auto [low, high] = Corners(boxes);
  const auto [default_low, default_high] = Corners(defaults);
  const torch::Tensor common =
      torch::min(high.unsqueeze(-1), default_high.unsqueeze(-2)) -
      torch::max(low.unsqueeze(-1), default_low.unsqueeze(-2));  // [2, M, 8732]
  const torch::Tensor shared = common.clamp_min(0).prod(0);
  return shared / (Areas(high - low).unsqueeze(1) +
                   Areas(default_high - default_low).unsqueeze(0) - shared);
}

constexpr double kEnoughOverlap = 0.5;
constexpr double kCentreVariance = 0.1;
constexpr double kSizeVariance = 0.2;

torch::Tensor OffsetsOf(const torch::Tensor& boxes,
                        const torch::Tensor& defaults) {
  const torch::Tensor default_sizes = defaults.narrow(0, 2, 2);
  const torch::Tensor centres =
      (boxes.narrow(0, 0, 2) - defaults.narrow(0, 0, 2)) / default_sizes;
  const torch::Tensor sizes = (boxes.narrow(0, 2, 2) / default_sizes).log();
  return torch::cat({centres / kCentreVariance, sizes / kSizeVariance}, 0);
}

}  // namespace

Ssd300Impl::Ssd300Impl(const Ssd300Options& options)
    : classes_(options.classes),
      backbone_(
          register_module("backbone", MakeResNetTrunk("resnet34", {1, 2, 1}))) {
  const std::vector<FeatureMap>& maps = FeatureMaps();
  for (size_t i = 0; i < maps.size(); ++i) {
    const std::string index = std::to_string(i);
    if (i > 0) {
      reductions_.push_back(register_module(
          "reduction" + index, MakeReduction(maps[i - 1], maps[i])));
      InitialiseXavier(*reductions_.back());
    }
    offset_heads_.push_back(
        register_module("offsets" + index, MakeHead(maps[i], 4)));
    class_heads_.push_back(
        register_module("classes" + index, MakeHead(maps[i], classes_)));
    InitialiseXavier(*offset_heads_.back());
    InitialiseXavier(*class_heads_.back());
  }
}

SsdOutput Ssd300Impl::forward(const torch::Tensor& images) {
  torch::Tensor features = backbone_->forward(images);
  std::vector<torch::Tensor> offsets;
  std::vector<torch::Tensor> logits;
  for (size_t i = 0; i < offset_heads_.size(); ++i) {
    if (i > 0) features = reductions_[i - 1]->forward(features);
    const int64_t count = features.size(0);
    // The order is: box of a cell, then row, then column.
    offsets.push_back(offset_heads_[i](features).reshape({count, 4, -1}));
    logits.push_back(class_heads_[i](features).reshape({count, classes_, -1}));
  }
  return {torch::cat(offsets, 2), torch::cat(logits, 2)};
}

torch::Tensor SsdDefaultBoxes() {
  std::vector<torch::Tensor> boxes;
  for (const FeatureMap& map : FeatureMaps()) {
    const torch::Tensor centres =
        (torch::arange(map.side, torch::kFloat) + 0.5) * map.step / kImageSide;
    const std::vector<torch::Tensor> rows_and_columns =
        torch::meshgrid({centres, centres}, "ij");
    for (const auto& [width, height] : BoxSizes(map)) {
      boxes.push_back(torch::stack(
          {rows_and_columns[1].flatten(), rows_and_columns[0].flatten(),
           torch::full({map.side * map.side}, width / kImageSide),
           torch::full({map.side * map.side}, height / kImageSide)}));
    }
  }
  return torch::cat(boxes, 1).clamp_(0, 1);
}

SsdTargets MatchSsdTargets(const torch::Tensor& boxes,
                           const torch::Tensor& labels) {
  const torch::Tensor defaults = SsdDefaultBoxes();
  std::vector<torch::Tensor> offsets;
  std::vector<torch::Tensor> found;
  for (int64_t image = 0; image < boxes.size(0); ++image) {
    const torch::Tensor objects = boxes[image].t();  // [4, M]
    const torch::Tensor overlaps = Overlaps(objects, defaults);
    auto [overlap, object] = overlaps.max(/*dim=*/0);  // for each default box
    const torch::Tensor best = overlaps.argmax(/*dim=*/1);
    object.index_put_({best}, torch::arange(objects.size(1)));
    overlap.index_put_({best}, torch::ones({objects.size(1)}));
    offsets.push_back(OffsetsOf(objects.index_select(1, object), defaults));
    found.push_back(labels[image].index_select(0, object).masked_fill(
        overlap.lt(kEnoughOverlap), 0));
  }
  return {torch::stack(offsets), torch::stack(found)};
}

torch::Tensor SsdLoss(const SsdOutput& output, const SsdTargets& targets) {
  namespace F = torch::nn::functional;
  const torch::Tensor is_object = targets.labels.gt(0);
  const torch::Tensor objects = is_object.sum(1);
  const torch::Tensor of_offsets =
      (F::smooth_l1_loss(output.offsets.to(torch::kFloat32), targets.offsets,
                         F::SmoothL1LossFuncOptions().reduction(torch::kNone))
           .sum(1) *
       is_object)
          .sum(1);
  const torch::Tensor of_classes =
      F::cross_entropy(output.logits.to(torch::kFloat32), targets.labels,
                       F::CrossEntropyFuncOptions().reduction(torch::kNone));
  // The position of each background box in descending order of loss.
  const torch::Tensor rank =
      of_classes.detach()
          .masked_fill(is_object, 0)
          .argsort(/*dim=*/int64_t{1}, /*descending=*/true)
          .argsort(/*dim=*/int64_t{1});
  const torch::Tensor counts =
      is_object.logical_or(rank.lt(3 * objects.unsqueeze(1)));
  const torch::Tensor sum = of_offsets + (of_classes * counts).sum(1);
  return (sum / objects.clamp_min(1)).mean();
}

}  // namespace hvdlite::trainers
