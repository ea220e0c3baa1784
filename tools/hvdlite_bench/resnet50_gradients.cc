#include "tools/hvdlite_bench/resnet50_gradients.h"

#include <algorithm>

namespace hvdlite::tools {
namespace {

// Adds, in backward's order reversed, a convolution without bias and the batch
// normalisation after it.
void AddConvolution(int64_t in, int64_t out, int64_t kernel,
                    std::vector<int64_t>& forward) {
  forward.push_back(in * out * kernel * kernel);
  forward.push_back(out);
  forward.push_back(out);
}

}  // namespace

std::vector<int64_t> Resnet50GradientElements() {
  constexpr int kBlocks[] = {3, 4, 6, 3};
  constexpr int64_t kExpansion = 4;
  std::vector<int64_t> elements;
  AddConvolution(3, 64, 7, elements);
  int64_t in = 64;
  int64_t width = 64;
  for (int blocks : kBlocks) {
    for (int block = 0; block < blocks; ++block) {
      AddConvolution(in, width, 1, elements);
      AddConvolution(width, width, 3, elements);
      AddConvolution(width, width * kExpansion, 1, elements);
      if (block == 0) AddConvolution(in, width * kExpansion, 1, elements);
      in = width * kExpansion;
    }
    width *= 2;
  }
  elements.push_back(in * 1000);  // the classifier's weight
  elements.push_back(1000);       // and bias
  std::reverse(elements.begin(), elements.end());
  return elements;
}

}  // namespace hvdlite::tools
