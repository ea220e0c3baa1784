// What users of LibTorch know as data parallelism on one machine, in the way
// of hvdlite: a process per rank, each with a shard of every batch.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace hvdlite {
namespace {

constexpr size_t kSamples = 48;
constexpr size_t kBatch = 24;  // of all ranks together

// Points and whether they lie in a circle.
class Circle : public torch::data::datasets::Dataset<Circle> {
 public:
  torch::data::Example<> get(size_t index) override {
    const double x = static_cast<double>(index * 29 % 41) / 20 - 1;
    const double y = static_cast<double>(index * 17 % 37) / 18 - 1;
    return {torch::tensor({x, y}, torch::kDouble),
            torch::tensor(x * x + y * y < 0.6 ? 1 : 0, torch::kLong)};
  }
  torch::optional<size_t> size() const override { return kSamples; }
};

template <typename BatchNorm>
torch::nn::Sequential MakeModel() {
  torch::nn::Sequential model(torch::nn::Linear(2, 8), BatchNorm(8),
                              torch::nn::ReLU(), torch::nn::Linear(8, 2));
  model->to(torch::kDouble);
  return model;
}

// Returns the loss.
template <typename Optimizer>
double SequentialStep(torch::nn::Sequential& model, Optimizer& optimizer,
                      const torch::data::Example<>& batch) {
  optimizer.zero_grad();
  torch::Tensor loss = torch::nll_loss(
      torch::log_softmax(model->forward(batch.data), 1), batch.target);
  loss.backward();
  optimizer.step();
  return loss.item<double>();
}

// The batch that all ranks' batches number `index` make together: each rank's
// samples follow one another.
torch::data::Example<> WholeExample(size_t index) {
  const auto ranks = static_cast<size_t>(size());
  std::vector<torch::data::Example<>> samples;
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i < kBatch / ranks; ++i) {
      samples.push_back(Circle().get(rank * (kSamples / ranks) +
                                     index * (kBatch / ranks) + i));
    }
  }
  return torch::data::transforms::Stack<>().apply_batch(std::move(samples));
}

TEST(DataParallelTest, TrainsAsOneProcess) {
  const auto ranks = static_cast<size_t>(size());
  ASSERT_EQ(kBatch % ranks, 0U);
  torch::manual_seed(static_cast<uint64_t>(rank()));  // another on each rank
  auto model = MakeModel<SyncBatchNorm>();
  broadcast_parameters(model, /*root_rank=*/0);
  auto alone = MakeModel<torch::nn::BatchNorm1d>();
  {
    const torch::NoGradGuard no_grad;
    for (const auto& item : model->named_parameters()) {
      alone->named_parameters()[item.key()].copy_(item.value());
    }
  }

  const auto sgd = torch::optim::SGDOptions(0.1).momentum(0.9);
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(model->parameters(), sgd),
      model->named_parameters());
  auto loader = torch::data::make_data_loader(
      Circle().map(torch::data::transforms::Stack<>()),
      torch::data::samplers::DistributedSequentialSampler(
          kSamples, ranks, static_cast<size_t>(rank())),
      torch::data::DataLoaderOptions(kBatch / ranks));
  torch::optim::SGD optimizer_alone(alone->parameters(), sgd);
  std::vector<double> losses;
  for (int epoch = 0; epoch < 10; ++epoch) {
    size_t index = 0;
    for (const torch::data::Example<>& batch : *loader) {
      SequentialStep(model, optimizer, batch);
      losses.push_back(
          SequentialStep(alone, optimizer_alone, WholeExample(index)));
      ++index;
    }
    EXPECT_EQ(index, kSamples / kBatch);
  }
  EXPECT_LT(losses.back(), losses.front());
  const auto expect_equal = [](const auto& actual, const auto& expected) {
    for (const auto& item : actual) {
      EXPECT_TRUE(
          torch::allclose(item.value(), expected[item.key()], 1e-8, 1e-10))
          << item.key();
    }
  };
  expect_equal(model->named_parameters(), alone->named_parameters());
  expect_equal(model->named_buffers(), alone->named_buffers());
}

}  // namespace
}  // namespace hvdlite
