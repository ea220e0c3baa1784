// The sizes of ResNet50's gradients.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::tools {

// Elements of each of the 161 gradients of ResNet50 (1000 classes, 25,557,032
// elements in all; He et al., "Deep Residual Learning for Image Recognition",
// table 1, with stride in the 3x3 convolution, which changes no size), in the
// order in which backward produces them: from the classifier to the first
// convolution, a block's shortcut before its last convolution.
std::vector<int64_t> Resnet50GradientElements();

}  // namespace hvdlite::tools
