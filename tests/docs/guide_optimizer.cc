// The examples of optimizers in docs/user_guide.md. The lines between
// "[guide]" and "[end]" are a code block of the guide (guide_test compares
// them). The code around them checks what the guide says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "tests/docs/guide_model.h"

namespace hvdlite::guide {
namespace {

TEST(GuideTest, SparseGradients) {
  const int rank = hvdlite::rank();
  const int size = hvdlite::size();
  const torch::Tensor tokens = torch::tensor({rank, size});
  // [guide]
  torch::nn::Embedding embedding(
      torch::nn::EmbeddingOptions(100000, 16).sparse(true));
  hvdlite::broadcast_parameters(embedding, /*root_rank=*/0);
  hvdlite::DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(embedding->parameters(), 0.1),
      embedding->named_parameters());
  embedding->forward(tokens).sum().backward();
  optimizer.synchronize();  // the gradient holds the rows of all ranks
  // [end]
  const torch::Tensor gradient = embedding->weight.grad();
  ASSERT_TRUE(gradient.is_sparse());
  EXPECT_EQ(gradient._nnz(), size + 1);
  EXPECT_FLOAT_EQ(gradient.to_dense()[0][0].item<float>(), 1.0f / size);
  EXPECT_FLOAT_EQ(gradient.to_dense()[size][0].item<float>(), 1.0f);
  optimizer.step();

  const torch::Tensor counts = torch::sparse_coo_tensor(
      tokens.unsqueeze(0), torch::ones({tokens.size(0)}), {100000});
  const torch::Tensor total = hvdlite::sparse_allreduce(
      counts, hvdlite::AllreduceOptions().op(hvdlite::ReduceOp::Sum));
  EXPECT_EQ(total.to_dense()[size].item<int>(), size);
  EXPECT_TRUE(total.is_coalesced());
}

TEST(GuideTest, Accumulation) {
  auto model = MakeModel();
  const std::vector<torch::Tensor> micro_batches =
      Shard(WholeBatch(6)).chunk(2);
  const int64_t passes = 2;
  // [guide]
  hvdlite::DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
      model->named_parameters(),
      hvdlite::DistributedOptimizerOptions().backward_passes_per_step(passes));
  optimizer.zero_grad();
  for (const torch::Tensor& inputs : micro_batches) {  // as many as `passes`
    (Loss(model, inputs) / passes).backward();
  }
  optimizer.step();
  // [end]
  ExpectAsOneProcess(model);
}

TEST(GuideTest, LossScale) {
  auto model = MakeModel();
  auto optimizer = Distribute(model);
  const torch::Tensor loss = Loss(model, Shard(WholeBatch()));
  double scale = 1024;
  int64_t skipped = optimizer.skipped_steps();
  // [guide]
  (loss * scale).backward();
  optimizer.synchronize();
  for (auto& parameter : model->parameters()) {
    if (parameter.grad().defined()) parameter.mutable_grad().div_(scale);
  }
  optimizer.step();
  optimizer.zero_grad();
  if (optimizer.skipped_steps() > skipped) {
    skipped = optimizer.skipped_steps();
    scale /= 2;
  }
  // [end]
  EXPECT_EQ(skipped, 0);
  ExpectAsOneProcess(model);
}

TEST(GuideTest, Clipping) {
  auto model = MakeModel();
  auto optimizer = Distribute(model);
  const torch::Tensor loss = 1000 * Loss(model, Shard(WholeBatch()));
  // [guide]
  optimizer.zero_grad();
  loss.backward();
  optimizer.synchronize();  // gradients now hold the average
  torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
  optimizer.step();  // does not reduce again
  // [end]
  auto alone = MakeModel();
  torch::optim::SGD sgd(alone->parameters(), 0.1);
  (1000 * Loss(alone, WholeBatch())).backward();
  EXPECT_GT(torch::nn::utils::clip_grad_norm_(alone->parameters(), 1.0), 1);
  sgd.step();
  ExpectClose(model, alone);
}

TEST(GuideTest, Closure) {
  auto model = MakeModel();
  const torch::Tensor inputs = Shard(WholeBatch());
  const double start = Loss(model, WholeBatch()).item<double>();
  // [guide]
  hvdlite::DistributedOptimizer optimizer(
      std::make_unique<torch::optim::LBFGS>(model->parameters(), 0.1),
      model->named_parameters());
  const torch::Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    torch::Tensor mine = Loss(model, inputs);
    mine.backward();
    return mine;
  });
  // [end]
  EXPECT_NEAR(loss.item<double>(), start, 1e-4 * start);
  EXPECT_LT(Loss(model, WholeBatch()).item<double>(), start);
  ExpectSameOnAllRanks(model);
}

TEST(GuideTest, SkippingAStep) {
  auto model = MakeModel();
  auto optimizer = Distribute(model);
  for (int step = 0; step < 3; ++step) {
    const bool fails = step == 1 && hvdlite::rank() == hvdlite::size() - 1;
    const torch::Tensor inputs =
        fails ? torch::zeros({2, 3}) : Shard(WholeBatch());
    optimizer.zero_grad();
    // [guide]
    bool failed = false;
    try {
      Loss(model, inputs).backward();
    } catch (const std::exception&) {
      failed = true;  // on this rank
    }
    const torch::Tensor skip = hvdlite::allreduce(
        torch::tensor(failed),
        hvdlite::AllreduceOptions().op(hvdlite::ReduceOp::Sum));
    if (skip.item<bool>()) {  // on all ranks
      optimizer.synchronize();
      optimizer.zero_grad();
    } else {
      optimizer.step();
    }
    // [end]
    EXPECT_EQ(failed, fails);
  }
  ExpectAsOneProcess(model, /*steps=*/2);
}

TEST(GuideTest, Schedule) {
  auto model = MakeModel();
  auto optimizer = Distribute(model);
  torch::optim::StepLR scheduler(optimizer.inner(), /*step_size=*/30,
                                 /*gamma=*/0.1);
  for (int epoch = 0; epoch <= 30; ++epoch) scheduler.step();
  EXPECT_NEAR(optimizer.inner().param_groups()[0].options().get_lr(), 0.01,
              1e-9);
}

TEST(GuideTest, Freezing) {
  auto model = MakeModel();
  auto optimizer = Distribute(model);
  const torch::Tensor before = model->parameters()[0].clone();
  for (torch::Tensor& parameter : model[0]->parameters()) {
    parameter.set_requires_grad(false);
  }
  Loss(model, Shard(WholeBatch())).backward();
  optimizer.step();
  EXPECT_TRUE(model->parameters()[0].equal(before));
  ExpectSameOnAllRanks(model);
}

TEST(GuideTest, GroupsOfGradients) {
  auto model = MakeModel();
  const auto two_groups = hvdlite::DistributedOptimizerOptions().groups(2);
  const auto first_layer_together =
      hvdlite::DistributedOptimizerOptions().groups(
          std::vector<std::vector<torch::Tensor>>{model[0]->parameters()});
  const auto train = [](torch::nn::Sequential trained, const auto& options) {
    auto optimizer = Distribute(trained, options);
    Loss(trained, Shard(WholeBatch())).backward();
    optimizer.step();
    ExpectAsOneProcess(trained);
  };
  train(model, first_layer_together);
  train(MakeModel(), two_groups);
}

TEST(GuideTest, CompressionAndAdasum) {
  auto model = MakeModel();
  const auto half_the_bytes =
      hvdlite::DistributedOptimizerOptions().compression(
          hvdlite::Compression::BF16);
  const auto adaptive =
      hvdlite::DistributedOptimizerOptions().op(hvdlite::ReduceOp::Adasum);
  for (const auto& options : {half_the_bytes, adaptive}) {
    auto optimizer = Distribute(model, options);
    Loss(model, Shard(WholeBatch())).backward();
    optimizer.step();
    ExpectSameOnAllRanks(model);
    optimizer.zero_grad();
  }
}

}  // namespace
}  // namespace hvdlite::guide
