// The examples of trainings and models in docs/user_guide.md. The lines between
// "[guide]" and "[end]" are a code block of the guide (guide_test compares
// them). The code around them checks what the guide says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/docs/guide_model.h"
#include "tests/torch_plugin/error_text.h"

namespace hvdlite::guide {
namespace {

using ::testing::HasSubstr;

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
  // All mini-batches are the same, so the average over the ranks that took part
  // is what one process computes.
  ExpectAsOneProcess(model, /*steps=*/hvdlite::size());
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
  ExpectAsOneProcess(model, /*steps=*/1, [&](torch::nn::Sequential& alone) {
    torch::Tensor sum = torch::zeros({});
    for (const int rank : mine.ranks()) {
      sum = sum + Loss(alone, WholeBatch() + rank) / mine.size();
    }
    return sum;
  });
  if (hvdlite::size() > 1) {
    const hvdlite::ProcessSet& other = sets[1 - hvdlite::rank() % 2];
    EXPECT_EQ(other.rank(), -1);
    EXPECT_THAT(ErrorText([&] { hvdlite::barrier(other); }),
                HasSubstr("is not in the process set"));
  }
  for (const hvdlite::ProcessSet& set : sets) hvdlite::remove_process_set(set);
}

TEST(GuideTest, Pipeline) {
  const torch::Tensor activations = torch::ones({3, 4}).requires_grad_();
  // Rank r sends its activations to rank r + 1, by alltoall.
  const int next = (hvdlite::rank() + 1) % hvdlite::size();
  const torch::Tensor splits = torch::zeros({hvdlite::size()}, torch::kLong);
  splits[next] = activations.size(0);
  const torch::Tensor inputs =
      std::get<0>(hvdlite::alltoall(activations, splits));
  ASSERT_EQ(inputs.size(0), 3);
  (inputs * (hvdlite::rank() + 1)).sum().backward();
  EXPECT_TRUE(activations.grad().eq(next + 1).all().item<bool>());
}

TEST(GuideTest, SynchronizedBatchNorm) {
  torch::nn::Sequential model(
      torch::nn::Linear(4, 8),
      hvdlite::SyncBatchNorm(torch::nn::BatchNormOptions(8)),
      torch::nn::ReLU());
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
  const std::string file =
      hvdlite::broadcast_object(::testing::TempDir(), 0) + "hvdlite_guide_" +
      hvdlite::broadcast_object(std::to_string(getpid()), 0) + ".pt";
  Loss(model, Shard(WholeBatch())).backward();
  optimizer.step();
  const torch::Tensor saved = model->parameters()[0].clone();
  {
    const std::string progress = "7 epochs";
    // [guide]
    if (hvdlite::rank() == 0) {
      hvdlite::save_checkpoint(file, *model, optimizer.inner(), progress);
    }
    // [end]
  }
  hvdlite::barrier();
  for (torch::Tensor& parameter : model->parameters()) {
    const torch::NoGradGuard no_grad;
    parameter.fill_(hvdlite::rank());
  }
  // [guide]
  std::string progress;  // whatever the program serialises
  if (hvdlite::rank() == 0 && hvdlite::checkpoint_exists(file)) {
    progress = hvdlite::load_checkpoint(file, *model, optimizer.inner());
  }
  hvdlite::broadcast_parameters(model, /*root_rank=*/0);
  hvdlite::broadcast_optimizer_state(optimizer, /*root_rank=*/0);
  progress = hvdlite::broadcast_object(progress, /*root_rank=*/0);
  const std::vector<std::string> hosts = hvdlite::allgather_object(
      "host of rank " + std::to_string(hvdlite::rank()));
  // [end]
  EXPECT_TRUE(model->parameters()[0].equal(saved));
  EXPECT_EQ(progress, "7 epochs");
  EXPECT_EQ(hosts.back(),
            "host of rank " + std::to_string(hvdlite::size() - 1));
  optimizer.zero_grad();
  Loss(model, Shard(WholeBatch())).backward();
  optimizer.step();
  ExpectSameOnAllRanks(model);
  if (hvdlite::rank() == 0) {
    // [guide]
    hvdlite::CheckpointWriter writer(file);
    writer.save(*model, optimizer.inner(), progress);  // every so often
    writer.wait();  // or when it is destroyed
    // [end]
    EXPECT_TRUE(writer.wait());
    std::filesystem::remove(file);
    std::filesystem::remove(file + ".previous");
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
  ExpectAsOneProcess(model);
}

}  // namespace
}  // namespace hvdlite::guide
