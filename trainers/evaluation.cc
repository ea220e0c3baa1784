#include "trainers/evaluation.h"

#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <utility>

#include "trainers/data/sets/dataset.h"
#include "trainers/data/sets/sampler.h"
#include "trainers/divergence.h"

namespace hvdlite::trainers {

Evaluation Evaluate(const Classifier& classify, Dataset& dataset,
                    int64_t batch_size, int workers) {
  const torch::NoGradGuard no_grad;
  double loss = 0;
  int64_t correct = 0;
  auto indices = EvaluationBatches({.dataset_size = dataset.size(),
                                    .batch_size = batch_size,
                                    .rank = rank(),
                                    .world_size = size()});
  const size_t count = indices.size();
  Prefetcher<Batch> batches =
      PrefetchBatches(dataset, std::move(indices), /*epoch=*/0, workers);
  for (size_t i = 0; i < count; ++i) {
    const Batch batch = batches.Next();
    const torch::Tensor logits = classify(batch.images);
    loss += torch::nn::functional::cross_entropy(
                logits, batch.labels,
                torch::nn::functional::CrossEntropyFuncOptions().reduction(
                    torch::kSum))
                .item<double>();
    correct += logits.argmax(1).eq(batch.labels).sum().item<int64_t>();
  }
  // Shares may be uneven, so sums are added up, never means.
  const torch::Tensor sums = allreduce(
      torch::tensor({loss, static_cast<double>(correct)}, torch::kFloat64),
      AllreduceOptions().op(ReduceOp::Sum).name("evaluation"));
  const auto images = static_cast<double>(dataset.size());
  const Evaluation evaluation = {sums[0].item<double>() / images,
                                 sums[1].item<double>() / images,
                                 dataset.size()};
  RequireFinite(evaluation.loss, "loss of the evaluation");
  return evaluation;
}

std::vector<double> AccuraciesOf(const std::vector<Evaluation>& evaluations) {
  std::vector<double> accuracies;
  for (const Evaluation& one : evaluations) accuracies.push_back(one.accuracy);
  return accuracies;
}

}  // namespace hvdlite::trainers
