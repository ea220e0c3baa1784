// Sizes of the gradients of well-known models, for benchmarks and simulations
// that reduce them without the models.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::support {

// Elements of each of the 161 gradients of ResNet50 (He et al., "Deep Residual
// Learning for Image Recognition", table 1), in the order in which backward
// produces them: from the classifier to the first convolution, a block's
// shortcut before its last convolution. 25,557,032 elements with 1000 classes,
// 23,528,522 with 10.
std::vector<int64_t> Resnet50GradientElements(int64_t classes = 1000);

// Elements of each of the 146 gradients of a transformer of 12 layers as large
// as BERT-base's (Devlin et al., "BERT: Pre-training of Deep Bidirectional
// Transformers for Language Understanding": model 768, feed-forward 3072), in
// the order in which backward produces them: 85,056,000 elements, 340 MB.
//
// A layer has the 12 tensors of torch::nn::TransformerEncoderLayer: the
// attention's input projection (3 x 768 x 768) and output projection, the two
// feed-forward matrices and two normalisations, each with its bias. A
// normalisation follows the last layer. There is no embedding: its gradient
// depends on the vocabulary, and would be sparse.
std::vector<int64_t> TransformerGradientElements();

}  // namespace hvdlite::support
