// The sizes of ResNet50's gradients, and what computing each takes.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::tools {

struct LayerGradient {
  int64_t elements = 0;
  // Multiply-adds of the layer's forward pass for one image of 224 x 224;
  // backward takes about twice as many. Of a batch normalisation and of biases
  // the elements of its output.
  double multiply_adds = 0;
};

// Each of the 161 gradients of ResNet50 (He et al., "Deep Residual Learning for
// Image Recognition", table 1, with stride in the 3x3 convolution, which
// changes no size), in the order in which backward produces them: from the
// classifier to the first convolution, a block's shortcut before its last
// convolution. 25,557,032 elements with 1000 classes, 23,528,522 with 10.
std::vector<LayerGradient> Resnet50Gradients(int64_t classes);

// The elements of each, with 1000 classes.
std::vector<int64_t> Resnet50GradientElements();

}  // namespace hvdlite::tools
