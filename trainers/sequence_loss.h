// How well a model predicts the tokens of sequences.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace hvdlite::trainers {

// Sums over the tokens that count.
struct SequenceLoss {
  torch::Tensor sum;    // cross entropy, in nats; differentiable
  int64_t correct = 0;  // tokens for which the most likely one is right
  int64_t tokens = 0;
};

// `logits` [N, T, vocabulary], `expected` [N, T] int64; tokens that are
// `ignored` do not count. `smoothing` is the share of probability that the
// wrong tokens get, in equal parts (Szegedy et al., "Rethinking the Inception
// Architecture for Computer Vision", CVPR 2016, section 7).
SequenceLoss ComputeSequenceLoss(const torch::Tensor& logits,
                                 const torch::Tensor& expected, int64_t ignored,
                                 double smoothing);

}  // namespace hvdlite::trainers
