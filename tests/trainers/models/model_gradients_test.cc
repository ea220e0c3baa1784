// Compares the gradients of N ranks with those of one process that computes
// every rank's share of the batch, for all models of the trainers. So batch
// normalisation and dropout cannot cause differences.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/trainers/synthetic/small_tasks.h"
#include "trainers/synthetic/synthetic_models.h"

namespace hvdlite::trainers {
namespace {

// Creates the model with the same weights everywhere, and the share of a rank.
SyntheticTask MakeShare(SyntheticTaskOptions options, int of_rank) {
  torch::manual_seed(7);
  options.seed = static_cast<uint64_t>(of_rank);
  return MakeSyntheticTask(options);
}

// The random numbers of dropout depend only on the rank of the share.
void Backward(const SyntheticTask& task, int of_rank) {
  torch::manual_seed(100 + static_cast<uint64_t>(of_rank));
  task.loss().backward();
}

// The mean over all shares; undefined for parameters without a gradient.
std::vector<torch::Tensor> MeanGradients(const SyntheticTaskOptions& options) {
  std::vector<torch::Tensor> means;
  for (int share = 0; share < size(); ++share) {
    const SyntheticTask task = MakeShare(options, share);
    Backward(task, share);
    const std::vector<torch::Tensor> parameters = task.model->parameters();
    means.resize(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].grad().defined()) continue;
      const torch::Tensor part =
          parameters[i].grad().to(torch::kFloat64).to_dense() / size();
      means[i] = means[i].defined() ? means[i] + part : part;
    }
  }
  return means;
}

class ModelGradientsTest
    : public ::testing::TestWithParam<SyntheticTaskOptions> {};

TEST_P(ModelGradientsTest, EqualThoseOfOneProcess) {
  const std::vector<torch::Tensor> expected = MeanGradients(GetParam());
  const SyntheticTask task = MakeShare(GetParam(), rank());
  torch::nn::Module& model = *task.model;
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(model.parameters(), 0.1),
      model.named_parameters());
  Backward(task, rank());
  optimizer.synchronize();
  const auto parameters = model.named_parameters();
  ASSERT_EQ(parameters.size(), expected.size());
  size_t compared = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i].defined()) continue;
    const torch::Tensor found =
        parameters[i].value().grad().to(torch::kFloat64).to_dense();
    const double difference = (found - expected[i]).abs().max().item<double>();
    const double largest = expected[i].abs().max().item<double>();
    EXPECT_LE(difference, 1e-6 + 1e-5 * largest) << parameters[i].key();
    ++compared;
  }
  EXPECT_GT(compared, 0U);
}

// Skips slow models, and models whose loss uses new data each time.
std::vector<SyntheticTaskOptions> Tasks() {
  std::vector<SyntheticTaskOptions> tasks;
  for (const SmallTask& task : SmallTasks()) {
    const std::string& model = task.options.model;
    if (model == "ssd300" || model == "neural_collaborative_filtering_20m" ||
        model == "polynomial_regression" || model == "style_transfer" ||
        model == "cart_pole" || model == "ball_game") {
      continue;
    }
    tasks.push_back(task.options);
  }
  return tasks;
}

INSTANTIATE_TEST_SUITE_P(All, ModelGradientsTest, ::testing::ValuesIn(Tasks()),
                         [](const auto& info) { return info.param.model; });

}  // namespace
}  // namespace hvdlite::trainers
