// The examples of docs/guide.md that run inside a world. What stands between
// "[guide]" and "[end]" is a code block of the guide, word for word (guide_test
// compares them); what is around it checks what the guide says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/torch_plugin/error_text.h"

namespace {

using ::hvdlite::ErrorText;
using ::testing::HasSubstr;

torch::nn::Sequential MakeModel() {
  torch::manual_seed(5);
  return torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::Tanh(),
                               torch::nn::Linear(8, 1));
}

// Of all ranks together; the same everywhere.
torch::Tensor WholeBatch(int64_t samples_per_rank = 6) {
  torch::manual_seed(11);
  return torch::randn({samples_per_rank * hvdlite::size(), 4});
}

torch::Tensor Shard(const torch::Tensor& batch) {
  return batch.tensor_split(hvdlite::size())[hvdlite::rank()];
}

torch::Tensor Loss(torch::nn::Sequential& model, const torch::Tensor& inputs) {
  return model->forward(inputs).square().mean();
}

hvdlite::DistributedOptimizer Distribute(
    torch::nn::Sequential& model,
    const hvdlite::DistributedOptimizerOptions& options = {}) {
  return hvdlite::DistributedOptimizer(
      std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
      model->named_parameters(), options);
}

void ExpectClose(torch::nn::Sequential& actual,
                 torch::nn::Sequential& expected) {
  const auto wanted = expected->parameters();
  const auto got = actual->parameters();
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(torch::allclose(got[i], wanted[i], 1e-4, 1e-6)) << i;
  }
}

void ExpectSameOnAllRanks(torch::nn::Sequential& model) {
  for (const torch::Tensor& parameter : model->parameters()) {
    const torch::Tensor first = hvdlite::broadcast(parameter.detach(), 0);
    EXPECT_TRUE(first.equal(parameter));
  }
}

TEST(GuideTest, Allreduce) {
  const int ranks = hvdlite::size();
  const torch::Tensor loss = torch::full({}, 1.0f + hvdlite::rank());
  const torch::Tensor correct = torch::full({3}, 1, torch::kLong);
  const torch::Tensor found = torch::tensor(hvdlite::rank() == 0, torch::kBool);
  // [guide]
  const torch::Tensor mean = hvdlite::allreduce(loss);  // Average
  const torch::Tensor worst = hvdlite::allreduce(
      loss, hvdlite::AllreduceOptions().op(hvdlite::ReduceOp::Max));
  const torch::Tensor anywhere = hvdlite::allreduce(  // bool: logical or
      found, hvdlite::AllreduceOptions().op(hvdlite::ReduceOp::Sum));
  hvdlite::allreduce_(  // in place
      correct, hvdlite::AllreduceOptions().op(hvdlite::ReduceOp::Sum));
  // [end]
  EXPECT_FLOAT_EQ(mean.item<float>(), (1.0f + ranks) / 2);
  EXPECT_EQ(worst.item<int>(), ranks);
  EXPECT_TRUE(anywhere.item<bool>());
  EXPECT_EQ(correct[2].item<int>(), ranks);

  // Truncated toward zero: 7 + 7 + ... + 8, divided by the number of ranks.
  const int64_t mine = hvdlite::rank() == 0 ? 8 : 7;
  const torch::Tensor integers = torch::tensor({mine, -mine});
  EXPECT_EQ(hvdlite::allreduce(integers)[0].item<int>(), ranks == 1 ? 8 : 7);
  EXPECT_EQ(hvdlite::allreduce(integers)[1].item<int>(), ranks == 1 ? -8 : -7);
  EXPECT_THAT(ErrorText([&] { hvdlite::allreduce(found); }),
              HasSubstr("use Sum (logical or)"));
  // Any strides, which may differ among ranks.
  const torch::Tensor matrix = torch::ones({4, 4});
  const torch::Tensor part = hvdlite::rank() == 0 ? matrix.t()[1] : matrix[1];
  hvdlite::allreduce_(part,
                      hvdlite::AllreduceOptions().op(hvdlite::ReduceOp::Sum));
  EXPECT_EQ(part[2].item<int>(), ranks);
  EXPECT_EQ(matrix[0][0].item<int>(), 1);
}

TEST(GuideTest, AllreduceWithScales) {
  const torch::Tensor counts = torch::full({2}, 100.0f);
  const torch::Tensor before = counts.clone();
  // [guide]
  const torch::Tensor scaled = hvdlite::allreduce(
      counts, hvdlite::AllreduceOptions()
                  .op(hvdlite::ReduceOp::Sum)
                  .prescale_factor(0.01)      // each rank's values, before
                  .postscale_factor(100.0));  // the result
  // [end]
  EXPECT_TRUE(torch::allclose(scaled, before * hvdlite::size()));
}

TEST(GuideTest, Asynchronous) {
  std::vector<torch::Tensor> tensors;
  for (int i = 0; i < 5; ++i) tensors.push_back(torch::full({3}, i));
  int other_work = 0;
  const auto ComputeSomethingElse = [&] { ++other_work; };
  // [guide]
  std::vector<hvdlite::Work> works;
  for (size_t i = 0; i < tensors.size(); ++i) {
    works.push_back(hvdlite::allreduce_async_(
        tensors[i], hvdlite::AllreduceOptions()
                        .name("tensor" + std::to_string(i))
                        .op(hvdlite::ReduceOp::Sum)));
  }
  ComputeSomethingElse();  // leave the tensors alone until they are done
  for (const hvdlite::Work& work : works) work.wait();
  // [end]
  EXPECT_EQ(other_work, 1);
  EXPECT_EQ(tensors[4][2].item<int>(), 4 * hvdlite::size());
}

TEST(GuideTest, Grouped) {
  const torch::Tensor loss_sum = torch::full({}, 2.5f);
  const torch::Tensor num_correct = torch::full({}, 3, torch::kLong);
  const torch::Tensor num_samples = torch::full({}, 4, torch::kLong);
  // [guide]
  const std::vector<torch::Tensor> sums = hvdlite::grouped_allreduce(
      {loss_sum, num_correct, num_samples},
      hvdlite::AllreduceOptions().name("metrics").op(hvdlite::ReduceOp::Sum));
  const double accuracy = sums[1].item<double>() / sums[2].item<double>();
  // [end]
  EXPECT_DOUBLE_EQ(accuracy, 0.75);
  EXPECT_FLOAT_EQ(sums[0].item<float>(), 2.5f * hvdlite::size());
}

TEST(GuideTest, RowsOfAllRanks) {
  const int rank = hvdlite::rank();
  const int size = hvdlite::size();
  const torch::Tensor predictions = torch::full({rank + 1, 2}, rank);
  // [guide]
  // {1, 2}, {2, 2}, {3, 2}, ... on the ranks; the result holds all rows.
  const torch::Tensor all_predictions = hvdlite::allgather(predictions);
  // [end]
  EXPECT_EQ(all_predictions.size(0), size * (size + 1) / 2);
  EXPECT_EQ(all_predictions[-1][0].item<int>(), size - 1);

  const torch::Tensor tokens = torch::arange(size * (size + 1) / 2);
  const torch::Tensor splits = torch::arange(1, size + 1);
  // [guide]
  // splits[r] rows go to rank r; here 1 to rank 0, 2 to rank 1, ...
  const auto [received, received_splits] = hvdlite::alltoall(tokens, splits);
  // [end]
  EXPECT_EQ(received.size(0), size * (rank + 1));
  EXPECT_TRUE(received_splits.eq(rank + 1).all().item<bool>());

  const torch::Tensor gradient = torch::ones({2 * size + 1, 3});
  // [guide]
  const torch::Tensor my_rows = hvdlite::reducescatter(gradient);
  // [end]
  EXPECT_EQ(my_rows.size(0), rank == 0 ? 3 : 2);
  EXPECT_TRUE(my_rows.eq(1).all().item<bool>());

  const torch::Tensor thresholds = torch::full({4}, rank);
  // [guide]
  hvdlite::broadcast_(thresholds, /*root_rank=*/0);
  // [end]
  EXPECT_TRUE(thresholds.eq(0).all().item<bool>());
  // [guide]
  hvdlite::barrier();
  // [end]
}

// The ranks submit in opposite orders.
TEST(GuideTest, Names) {
  const torch::Tensor a = torch::full({2}, 1);
  const torch::Tensor b = torch::full({3}, 10);
  const auto submit = [](const std::string& name, const torch::Tensor& tensor) {
    return hvdlite::allreduce_async_(
        tensor,
        hvdlite::AllreduceOptions().name(name).op(hvdlite::ReduceOp::Sum));
  };
  const bool a_first = hvdlite::rank() % 2 == 0;
  const hvdlite::Work first = a_first ? submit("a", a) : submit("b", b);
  const hvdlite::Work second = a_first ? submit("b", b) : submit("a", a);
  first.wait();
  second.wait();
  EXPECT_EQ(a[0].item<int>(), hvdlite::size());
  EXPECT_EQ(b[0].item<int>(), 10 * hvdlite::size());

  const torch::Tensor loss = torch::full({}, 1.0f + hvdlite::rank());
  // [guide]
  const torch::Tensor validation_loss = hvdlite::allreduce(
      loss, hvdlite::AllreduceOptions().name("validation.loss"));
  // [end]
  EXPECT_FLOAT_EQ(validation_loss.item<float>(), (1.0f + hvdlite::size()) / 2);
}

TEST(GuideTest, GradientsThroughCollectives) {
  const int rank = hvdlite::rank();
  const int size = hvdlite::size();
  torch::manual_seed(3);
  const torch::Tensor everything = torch::randn({4 * size, 5}, torch::kDouble);
  const torch::Tensor features =
      everything.tensor_split(size)[rank].clone().requires_grad_();
  // [guide]
  // Contrastive loss: my features against those of all ranks.
  const torch::Tensor candidates = hvdlite::allgather(features);
  const torch::Tensor targets =
      torch::arange(features.size(0)) + hvdlite::rank() * features.size(0);
  const torch::Tensor loss = torch::nn::functional::cross_entropy(
      features.matmul(candidates.t()), targets);
  loss.backward();  // collective, too
  // [end]
  // One process that has all features, and the sum of the ranks' losses.
  const torch::Tensor whole = everything.clone().requires_grad_();
  torch::Tensor sum = torch::zeros({}, torch::kDouble);
  for (int r = 0; r < size; ++r) {
    sum = sum + torch::nn::functional::cross_entropy(
                    whole.tensor_split(size)[r].matmul(whole.t()),
                    torch::arange(4) + r * 4);
  }
  sum.backward();
  EXPECT_TRUE(
      torch::allclose(features.grad(), whole.grad().tensor_split(size)[rank]));
}

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

  // [guide]
  const torch::Tensor counts = torch::sparse_coo_tensor(
      tokens.unsqueeze(0), torch::ones({tokens.size(0)}), {100000});
  const torch::Tensor total = hvdlite::sparse_allreduce(
      counts, hvdlite::AllreduceOptions().op(hvdlite::ReduceOp::Sum));
  // [end]
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
  auto alone = MakeModel();
  torch::optim::SGD sgd(alone->parameters(), 0.1);
  Loss(alone, WholeBatch(6)).backward();
  sgd.step();
  ExpectClose(model, alone);
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
  auto alone = MakeModel();
  torch::optim::SGD sgd(alone->parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    const bool fails = step == 1 && hvdlite::rank() == hvdlite::size() - 1;
    const torch::Tensor inputs =
        fails ? torch::zeros({2, 3}) : Shard(WholeBatch());
    optimizer.zero_grad();
    sgd.zero_grad();
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
    if (step == 1) continue;
    Loss(alone, WholeBatch()).backward();
    sgd.step();
    ExpectClose(model, alone);
  }
}

TEST(GuideTest, Schedule) {
  auto model = MakeModel();
  auto optimizer = Distribute(model);
  // [guide]
  torch::optim::StepLR scheduler(optimizer.inner(), /*step_size=*/30,
                                 /*gamma=*/0.1);
  // [end]
  for (int epoch = 0; epoch <= 30; ++epoch) scheduler.step();
  EXPECT_NEAR(optimizer.inner().param_groups()[0].options().get_lr(), 0.01,
              1e-9);
}

TEST(GuideTest, Freezing) {
  auto model = MakeModel();
  auto optimizer = Distribute(model);
  const torch::Tensor before = model->parameters()[0].clone();
  // [guide]
  for (torch::Tensor& parameter : model[0]->parameters()) {
    parameter.set_requires_grad(false);
  }
  // [end]
  Loss(model, Shard(WholeBatch())).backward();
  optimizer.step();
  EXPECT_TRUE(model->parameters()[0].equal(before));
  ExpectSameOnAllRanks(model);
  for (torch::Tensor& parameter : model[0]->parameters()) {
    parameter.set_requires_grad(true);
  }
  optimizer.zero_grad();
  Loss(model, Shard(WholeBatch())).backward();
  optimizer.step();
  EXPECT_FALSE(model->parameters()[0].equal(before));
  ExpectSameOnAllRanks(model);
}

TEST(GuideTest, GroupsOfGradients) {
  auto model = MakeModel();
  // [guide]
  const auto two_groups = hvdlite::DistributedOptimizerOptions().groups(2);
  const auto first_layer_together =
      hvdlite::DistributedOptimizerOptions().groups(
          std::vector<std::vector<torch::Tensor>>{model[0]->parameters()});
  // [end]
  auto alone = MakeModel();
  torch::optim::SGD sgd(alone->parameters(), 0.1);
  Loss(alone, WholeBatch()).backward();
  sgd.step();
  {
    auto optimizer = Distribute(model, first_layer_together);
    Loss(model, Shard(WholeBatch())).backward();
    optimizer.step();
    ExpectClose(model, alone);
  }
  auto other = MakeModel();
  auto optimizer = Distribute(other, two_groups);
  Loss(other, Shard(WholeBatch())).backward();
  optimizer.step();
  ExpectClose(other, alone);
}

TEST(GuideTest, CompressionAndAdasum) {
  auto model = MakeModel();
  // [guide]
  const auto half_the_bytes =
      hvdlite::DistributedOptimizerOptions().compression(
          hvdlite::Compression::BF16);
  const auto adaptive =
      hvdlite::DistributedOptimizerOptions().op(hvdlite::ReduceOp::Adasum);
  // [end]
  for (const auto& options : {half_the_bytes, adaptive}) {
    auto optimizer = Distribute(model, options);
    Loss(model, Shard(WholeBatch())).backward();
    optimizer.step();
    ExpectSameOnAllRanks(model);
    optimizer.zero_grad();
  }
  // Equal tensors are averaged, orthogonal ones added.
  const auto adasum = hvdlite::AllreduceOptions().op(hvdlite::ReduceOp::Adasum);
  const torch::Tensor equal = torch::full({3}, 2.0f);
  EXPECT_TRUE(torch::allclose(hvdlite::allreduce(equal, adasum), equal));
  torch::Tensor orthogonal = torch::zeros({hvdlite::size()});
  orthogonal[hvdlite::rank()] = 2;
  EXPECT_TRUE(torch::allclose(hvdlite::allreduce(orthogonal, adasum),
                              torch::full({hvdlite::size()}, 2.0f)));
}

TEST(GuideTest, UnevenData) {
  auto model = MakeModel();
  auto optimizer = Distribute(model);
  // Rank r has r + 1 batches.
  std::vector<torch::Tensor> my_batches;
  for (int i = 0; i <= hvdlite::rank(); ++i) my_batches.push_back(WholeBatch());
  // [guide]
  for (const torch::Tensor& inputs : my_batches) {  // as many as this rank has
    optimizer.zero_grad();
    Loss(model, inputs).backward();
    optimizer.step();
  }
  const int last = hvdlite::join();
  hvdlite::broadcast_parameters(model, last);
  hvdlite::broadcast_optimizer_state(optimizer, last);
  // [end]
  EXPECT_EQ(last, hvdlite::size() - 1);
  ExpectSameOnAllRanks(model);
  // All batches are the same: the average over those that took part is what
  // one process computes.
  auto alone = MakeModel();
  torch::optim::SGD sgd(alone->parameters(), 0.1);
  for (int i = 0; i < hvdlite::size(); ++i) {
    sgd.zero_grad();
    Loss(alone, WholeBatch()).backward();
    sgd.step();
  }
  ExpectClose(model, alone);
}

TEST(GuideTest, ModelGroups) {
  auto model = MakeModel();
  // [guide]
  // Two models, each trained by every second rank.
  std::vector<int> even;
  std::vector<int> odd;
  for (int rank = 0; rank < hvdlite::size(); ++rank) {
    (rank % 2 == 0 ? even : odd).push_back(rank);
  }
  std::vector<hvdlite::ProcessSet> sets;
  for (const std::vector<int>& ranks : {even, odd}) {  // on every rank
    if (!ranks.empty()) sets.push_back(hvdlite::add_process_set(ranks));
  }
  const hvdlite::ProcessSet mine = sets[hvdlite::rank() % 2];
  hvdlite::broadcast_parameters(model, mine.ranks().front(), mine);
  hvdlite::DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
      model->named_parameters(),
      hvdlite::DistributedOptimizerOptions().process_set(mine));
  // [end]
  EXPECT_TRUE(mine.included());
  const torch::Tensor inputs = WholeBatch() + hvdlite::rank();
  Loss(model, inputs).backward();
  optimizer.step();
  auto alone = MakeModel();
  torch::optim::SGD sgd(alone->parameters(), 0.1);
  torch::Tensor sum = torch::zeros({});
  for (const int rank : mine.ranks()) {
    sum = sum + Loss(alone, WholeBatch() + rank) / mine.size();
  }
  sum.backward();
  sgd.step();
  ExpectClose(model, alone);
  if (hvdlite::size() > 1) {
    const hvdlite::ProcessSet& other = sets[1 - hvdlite::rank() % 2];
    EXPECT_EQ(other.rank(), -1);
    EXPECT_THAT(ErrorText([&] { hvdlite::barrier(other); }),
                HasSubstr("is not in the process set"));
  }
  // [guide]
  for (const hvdlite::ProcessSet& set : sets) hvdlite::remove_process_set(set);
  // [end]
}

TEST(GuideTest, Pipeline) {
  const torch::Tensor activations = torch::ones({3, 4}).requires_grad_();
  // [guide]
  // Rank r hands its activations to rank r + 1: a shift, by alltoall.
  const int next = (hvdlite::rank() + 1) % hvdlite::size();
  const torch::Tensor splits = torch::zeros({hvdlite::size()}, torch::kLong);
  splits[next] = activations.size(0);
  const torch::Tensor inputs =
      std::get<0>(hvdlite::alltoall(activations, splits));
  // [end]
  ASSERT_EQ(inputs.size(0), 3);
  (inputs * (hvdlite::rank() + 1)).sum().backward();
  EXPECT_TRUE(activations.grad().eq(next + 1).all().item<bool>());
}

TEST(GuideTest, SynchronizedBatchNorm) {
  // [guide]
  torch::nn::Sequential model(
      torch::nn::Linear(4, 8),
      hvdlite::SyncBatchNorm(torch::nn::BatchNormOptions(8)),
      torch::nn::ReLU());
  // [end]
  torch::nn::Sequential alone(torch::nn::Linear(4, 8),
                              torch::nn::BatchNorm1d(8), torch::nn::ReLU());
  hvdlite::broadcast_parameters(model, /*root_rank=*/0);
  std::stringstream archive;
  torch::save(model, archive);
  torch::load(alone, archive);
  EXPECT_TRUE(torch::allclose(model->forward(Shard(WholeBatch())),
                              Shard(alone->forward(WholeBatch())), 1e-3, 1e-5));
  model->eval();
  if (hvdlite::rank() == 0) model->forward(WholeBatch());  // not collective
}

TEST(GuideTest, ResumingFromACheckpoint) {
  auto model = MakeModel();
  auto optimizer = hvdlite::DistributedOptimizer(
      std::make_unique<torch::optim::SGD>(
          model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)),
      model->named_parameters());
  const std::string directory =
      hvdlite::broadcast_object(testing::TempDir(), 0) + "hvdlite_guide_" +
      hvdlite::broadcast_object(std::to_string(getpid()), 0);
  const std::string model_file = directory + "_model.pt";
  const std::string optimizer_file = directory + "_optimizer.pt";
  Loss(model, Shard(WholeBatch())).backward();
  optimizer.step();
  const torch::Tensor saved = model->parameters()[0].clone();
  // [guide]
  if (hvdlite::rank() == 0) {
    torch::save(model, model_file);
    torch::save(optimizer.inner(), optimizer_file);
  }
  // [end]
  hvdlite::barrier();
  for (torch::Tensor& parameter : model->parameters()) {
    const torch::NoGradGuard no_grad;
    parameter.fill_(hvdlite::rank());
  }
  const int64_t epochs_in_checkpoint = 7;
  // [guide]
  std::string progress;  // whatever the program serialises
  if (hvdlite::rank() == 0) {
    torch::load(model, model_file);
    torch::load(optimizer.inner(), optimizer_file);
    progress = std::to_string(epochs_in_checkpoint);
  }
  hvdlite::broadcast_parameters(model, /*root_rank=*/0);
  hvdlite::broadcast_optimizer_state(optimizer, /*root_rank=*/0);
  progress = hvdlite::broadcast_object(progress, /*root_rank=*/0);
  const std::vector<std::string> hosts = hvdlite::allgather_object(
      "host of rank " + std::to_string(hvdlite::rank()));
  // [end]
  EXPECT_TRUE(model->parameters()[0].equal(saved));
  EXPECT_EQ(progress, "7");
  EXPECT_EQ(hosts.back(),
            "host of rank " + std::to_string(hvdlite::size() - 1));
  optimizer.zero_grad();
  Loss(model, Shard(WholeBatch())).backward();
  optimizer.step();
  ExpectSameOnAllRanks(model);
  if (hvdlite::rank() == 0) {
    std::filesystem::remove(model_file);
    std::filesystem::remove(optimizer_file);
  }
}

TEST(GuideTest, OneBatchOnAllRanks) {
  auto model = MakeModel();
  const torch::Tensor batch = WholeBatch();
  // [guide]
  // As torch::nn::parallel::data_parallel(model, batch): split, run, gather.
  const torch::Tensor shard =
      batch.tensor_split(hvdlite::size())[hvdlite::rank()];
  const torch::Tensor outputs = hvdlite::allgather(model->forward(shard));
  // [end]
  auto alone = MakeModel();
  EXPECT_TRUE(torch::allclose(outputs, alone->forward(batch), 1e-4, 1e-6));
  // Each rank's gradient is that of as many equal losses as there are ranks;
  // the optimizer's average takes that out.
  auto optimizer = Distribute(model);
  outputs.square().mean().backward();
  optimizer.step();
  torch::optim::SGD sgd(alone->parameters(), 0.1);
  Loss(alone, batch).backward();
  sgd.step();
  ExpectClose(model, alone);
}

TEST(GuideTest, DisagreementLeavesTheWorldHealthy) {
  if (hvdlite::size() == 1) GTEST_SKIP() << "nobody to disagree with";
  const torch::Tensor logits =
      torch::ones({hvdlite::rank() == 0 ? 3 : 2}, torch::kFloat);
  std::string text;
  const auto Log = [&](const std::string& message) { text = message; };
  // [guide]
  try {
    hvdlite::allreduce(logits, hvdlite::AllreduceOptions().name("logits"));
  } catch (const hvdlite::WorldBroken& error) {
    throw;  // the world is lost: save what can be saved, and end
  } catch (const c10::Error& error) {
    Log(error.what_without_backtrace());  // the same text on every rank
  }
  // [end]
  EXPECT_EQ(text, hvdlite::broadcast_object(text, 0));
  EXPECT_THAT(text,
              HasSubstr("the ranks disagree about the shape of 'logits'"));
}

TEST(GuideTest, DuplicateName) {
  const torch::Tensor tensor = torch::ones({2});
  if (hvdlite::size() == 1) GTEST_SKIP() << "nothing stays in flight";
  if (hvdlite::rank() == 0) hvdlite::barrier();
  const auto options = hvdlite::AllreduceOptions().name("twice");
  const hvdlite::Work work = hvdlite::allreduce_async_(tensor, options);
  if (hvdlite::rank() != 0) {
    EXPECT_THAT(
        ErrorText([&] { (void)hvdlite::allreduce_async_(tensor, options); }),
        HasSubstr("is still pending on this rank"));
    hvdlite::barrier();
  }
  work.wait();
}

TEST(GuideTest, Timeline) {
  const std::string path =
      hvdlite::broadcast_object(testing::TempDir() + "hvdlite_guide_" +
                                    std::to_string(getpid()) + ".json",
                                0);
  const auto TrainOneEpoch = [] { hvdlite::allreduce(torch::ones({2})); };
  // [guide]
  hvdlite::start_timeline(path);  // on every rank
  {
    hvdlite::TraceSpan span("EPOCH");
    TrainOneEpoch();
  }
  hvdlite::stop_timeline();
  // [end]
  hvdlite::barrier();
  if (hvdlite::rank() == 0) {
    EXPECT_TRUE(std::filesystem::remove(path));
  }
}

}  // namespace
