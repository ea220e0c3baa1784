#include "tools/support/transformer_gradients.h"

#include <algorithm>

namespace hvdlite::tools {

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

}  // namespace hvdlite::tools
