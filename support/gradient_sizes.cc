#include "support/gradient_sizes.h"

#include <algorithm>

namespace hvdlite::support {
namespace {

// Adds, in backward's order reversed, a convolution without bias and the batch
// normalisation after it. `area`: pixels of its output.
void AddConvolution(int64_t in, int64_t out, int64_t kernel, int64_t area,
                    std::vector<LayerGradient>& forward) {
  const int64_t weights = in * out * kernel * kernel;
  const auto outputs = static_cast<double>(out * area);
  forward.push_back({.elements = weights,
                     .multiply_adds = static_cast<double>(weights * area)});
  forward.push_back({.elements = out, .multiply_adds = outputs});
  forward.push_back({.elements = out, .multiply_adds = outputs});
}

}  // namespace

std::vector<LayerGradient> Resnet50Gradients(int64_t classes) {
  constexpr int kBlocks[] = {3, 4, 6, 3};
  constexpr int64_t kExpansion = 4;
  std::vector<LayerGradient> gradients;
  AddConvolution(3, 64, 7, 112 * 112, gradients);
  int64_t in = 64;
  int64_t width = 64;
  int64_t side = 56;     // of a block's output
  int64_t in_side = 56;  // of its input
  for (int blocks : kBlocks) {
    for (int block = 0; block < blocks; ++block) {
      const int64_t area = side * side;
      AddConvolution(in, width, 1, in_side * in_side, gradients);
      AddConvolution(width, width, 3, area, gradients);
      AddConvolution(width, width * kExpansion, 1, area, gradients);
      if (block == 0)
        AddConvolution(in, width * kExpansion, 1, area, gradients);
      in = width * kExpansion;
      in_side = side;
    }
    width *= 2;
    side /= 2;
  }
  gradients.push_back(
      {.elements = in * classes,
       .multiply_adds = static_cast<double>(in * classes)});  // the classifier
  gradients.push_back(
      {.elements = classes, .multiply_adds = static_cast<double>(classes)});
  std::reverse(gradients.begin(), gradients.end());
  return gradients;
}

std::vector<int64_t> Resnet50GradientElements() {
  std::vector<int64_t> elements;
  for (const LayerGradient& gradient : Resnet50Gradients(/*classes=*/1000)) {
    elements.push_back(gradient.elements);
  }
  return elements;
}

std::vector<int64_t> TransformerGradientElements() {
  constexpr int kLayers = 12;
  constexpr int64_t kModel = 768;
  constexpr int64_t kFeedForward = 3072;
  std::vector<int64_t> elements;  // in the order of forward
  const auto add = [&](int64_t weight, int64_t bias) {
    elements.push_back(weight);
    elements.push_back(bias);
  };
  for (int layer = 0; layer < kLayers; ++layer) {
    add(3 * kModel * kModel, 3 * kModel);
    add(kModel * kModel, kModel);
    add(kModel, kModel);
    add(kModel * kFeedForward, kFeedForward);
    add(kFeedForward * kModel, kModel);
    add(kModel, kModel);
  }
  add(kModel, kModel);
  std::reverse(elements.begin(), elements.end());
  return elements;
}

}  // namespace hvdlite::support
