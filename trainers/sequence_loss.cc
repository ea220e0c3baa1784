#include "trainers/sequence_loss.h"

#include <torch/nn/functional/loss.h>

namespace hvdlite::trainers {
namespace {

// With probability 1 - smoothing for the expected token and
// smoothing / (vocabulary - 1) for any other.
torch::Tensor SmoothedSum(const torch::Tensor& logits,
                          const torch::Tensor& expected, int64_t ignored,
                          double smoothing) {
  const torch::Tensor counts = expected.ne(ignored);
  const torch::Tensor log_probabilities = logits.log_softmax(1);
  const torch::Tensor of_expected =
      log_probabilities
          .gather(1, expected.masked_fill(counts.logical_not(), 0).unsqueeze(1))
          .squeeze(1);
  const torch::Tensor of_others = log_probabilities.sum(1) - of_expected;
  const double share = smoothing / static_cast<double>(logits.size(1) - 1);
  return -((1 - smoothing) * of_expected + share * of_others)
              .masked_select(counts)
              .sum();
}

}  // namespace

SequenceLoss ComputeSequenceLoss(const torch::Tensor& logits,
                                 const torch::Tensor& expected, int64_t ignored,
                                 double smoothing) {
  namespace F = torch::nn::functional;
  const torch::Tensor flat_logits = logits.reshape({-1, logits.size(2)});
  const torch::Tensor flat_expected = expected.reshape({-1});
  SequenceLoss loss;
  loss.sum = smoothing > 0
                 ? SmoothedSum(flat_logits, flat_expected, ignored, smoothing)
                 : F::cross_entropy(flat_logits, flat_expected,
                                    F::CrossEntropyFuncOptions()
                                        .reduction(torch::kSum)
                                        .ignore_index(ignored));
  const torch::NoGradGuard no_grad;
  const torch::Tensor counts = flat_expected.ne(ignored);
  loss.correct = flat_logits.argmax(1)
                     .eq(flat_expected)
                     .logical_and(counts)
                     .sum()
                     .item<int64_t>();
  loss.tokens = counts.sum().item<int64_t>();
  return loss;
}

}  // namespace hvdlite::trainers
