// The examples of collectives in docs/user_guide.md. The lines between
// "[guide]" and "[end]" are a code block of the guide (guide_test compares
// them). The code around them checks what the guide says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/torch_plugin/error_text.h"

namespace {

using ::hvdlite::ErrorText;
using ::testing::HasSubstr;

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
  EXPECT_THAT(ErrorText([&] { hvdlite::allreduce(found); }),
              HasSubstr("use Sum (logical or)"));
}

TEST(GuideTest, AllreduceWithScales) {
  const torch::Tensor counts = torch::full({2}, 100.0f);
  const torch::Tensor before = counts.clone();
  const torch::Tensor scaled = hvdlite::allreduce(
      counts, hvdlite::AllreduceOptions()
                  .op(hvdlite::ReduceOp::Sum)
                  .prescale_factor(0.01)      // each rank's values, before
                  .postscale_factor(100.0));  // the result
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
  const torch::Tensor tokens = torch::arange(size * (size + 1) / 2);
  const torch::Tensor splits = torch::arange(1, size + 1);
  const torch::Tensor gradient = torch::ones({2 * size + 1, 3});
  const torch::Tensor thresholds = torch::full({4}, rank);
  // [guide]
  // {1, 2}, {2, 2}, {3, 2}, ... on the ranks; the result holds all rows.
  const torch::Tensor all_predictions = hvdlite::allgather(predictions);

  // splits[r] rows go to rank r; here 1 to rank 0, 2 to rank 1, ...
  const auto [received, received_splits] = hvdlite::alltoall(tokens, splits);

  const torch::Tensor my_rows = hvdlite::reducescatter(gradient);
  hvdlite::broadcast_(thresholds, /*root_rank=*/0);
  hvdlite::barrier();
  // [end]
  EXPECT_EQ(all_predictions.size(0), size * (size + 1) / 2);
  EXPECT_EQ(all_predictions[-1][0].item<int>(), size - 1);
  EXPECT_EQ(received.size(0), size * (rank + 1));
  EXPECT_TRUE(received_splits.eq(rank + 1).all().item<bool>());
  EXPECT_EQ(my_rows.size(0), rank == 0 ? 3 : 2);
  EXPECT_TRUE(my_rows.eq(1).all().item<bool>());
  EXPECT_TRUE(thresholds.eq(0).all().item<bool>());
}

TEST(GuideTest, Names) {
  const torch::Tensor loss = torch::full({}, 1.0f + hvdlite::rank());
  const torch::Tensor validation_loss = hvdlite::allreduce(
      loss, hvdlite::AllreduceOptions().name("validation.loss"));
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
  // Compare with one process that has all features and the sum of all losses.
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

TEST(GuideTest, DisagreementLeavesTheWorldHealthy) {
  if (hvdlite::size() == 1) GTEST_SKIP() << "needs two ranks";
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

TEST(GuideTest, Timeline) {
  const std::string path =
      hvdlite::broadcast_object(::testing::TempDir() + "hvdlite_guide_" +
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

TEST(GuideTest, RunReport) {
  const std::string report_file = ::testing::TempDir() + "hvdlite_report_" +
                                  std::to_string(getpid()) + ".json";
  const double images = 300;
  const double seconds = 2;
  // [guide]
  hvdlite::write_run_report(
      report_file, {.items_per_second = images / seconds, .items = "images"});
  // [end]
  EXPECT_EQ(std::filesystem::remove(report_file), hvdlite::rank() == 0);
}

}  // namespace
