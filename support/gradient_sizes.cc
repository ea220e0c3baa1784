#include "support/gradient_sizes.h"

#include <algorithm>

namespace hvdlite::support {

std::vector<int64_t> Resnet50GradientElements(int64_t classes) {
  constexpr int kBlocks[] = {3, 4, 6, 3};
  constexpr int64_t kExpansion = 4;
  std::vector<int64_t> elements;  // in the order of forward
  // A convolution without bias, and the batch normalisation after it.
  const auto add = [&](int64_t in, int64_t out, int64_t kernel) {
    elements.insert(elements.end(), {in * out * kernel * kernel, out, out});
  };
  add(3, 64, 7);
  int64_t in = 64;
  int64_t width = 64;
  for (const int blocks : kBlocks) {
    for (int block = 0; block < blocks; ++block) {
      add(in, width, 1);
      add(width, width, 3);
      add(width, width * kExpansion, 1);
      if (block == 0) add(in, width * kExpansion, 1);
      in = width * kExpansion;
    }
    width *= 2;
  }
  elements.insert(elements.end(), {in * classes, classes});  // the classifier
  std::reverse(elements.begin(), elements.end());
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
