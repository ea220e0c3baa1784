// SyncBatchNorm where ranks do not all do the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/torch_plugin/same_error.h"

namespace hvdlite {
namespace {

constexpr int64_t kRanksChannels = 3;
constexpr int64_t kRows = 4;  // on each rank

// One training step among the ranks of the set, as LibTorch's on all of their
// rows.
void ExpectAsOneProcess(SyncBatchNorm& module, torch::nn::BatchNorm1d& alone,
                        const ProcessSet& process_set = {}) {
  torch::manual_seed(8);
  const torch::Tensor rows = torch::randn({size() * kRows, kRanksChannels});
  std::vector<torch::Tensor> of_members;
  for (const int member : process_set.ranks()) {
    of_members.push_back(rows.slice(0, member * kRows, (member + 1) * kRows));
  }
  const torch::Tensor whole = torch::cat(of_members).requires_grad_();
  const torch::Tensor mine =
      rows.slice(0, rank() * kRows, (rank() + 1) * kRows).clone();
  mine.requires_grad_();
  module->forward(mine).pow(3).sum().backward();
  alone->forward(whole).pow(3).sum().backward();
  const int64_t first = process_set.rank() * kRows;
  EXPECT_TRUE(torch::allclose(
      mine.grad(), whole.grad().slice(0, first, first + kRows), 1e-3, 1e-4));
  EXPECT_TRUE(torch::allclose(module->running_mean, alone->running_mean));
  EXPECT_TRUE(torch::allclose(module->running_var, alone->running_var));
}

TEST(SyncBatchNormRanksTest, BadInputOnOneRankIsTheSameErrorOnAll) {
  const std::vector<std::pair<torch::Tensor, std::string>> cases = {
      {torch::zeros({kRows, 2}), "[4, 2]"},
      {torch::zeros({kRanksChannels}), "[N, 3, ...]"},
      {torch::zeros({kRows, kRanksChannels}, torch::kLong), "is not supported"},
      {torch::zeros({kRows, kRanksChannels}).to_sparse(),
       "only dense CPU tensors"},
      {torch::Tensor(), "undefined"}};
  for (const auto& [bad, reason] : cases) {
    SyncBatchNorm module(kRanksChannels);
    torch::nn::BatchNorm1d alone(kRanksChannels);
    ExpectSameError(
        [&, bad = bad] {
          module->forward(
              IsLast() ? bad
                       : torch::rand({kRows, kRanksChannels}).requires_grad_());
        },
        reason);
    EXPECT_EQ(module->num_batches_tracked.item<int64_t>(), 0);
    ExpectAsOneProcess(module, alone);
  }
}

TEST(SyncBatchNormRanksTest, StatisticsAreThoseOfTheProcessSet) {
  // Rank 0 and the last one; of four ranks or more one in between, too.
  std::vector<int> ranks = {0};
  if (size() > 3) ranks.push_back(2);
  if (size() > 1) ranks.push_back(size() - 1);
  const ProcessSet set = add_process_set(ranks);
  if (set.included()) {
    SyncBatchNorm module(torch::nn::BatchNormOptions(kRanksChannels), set);
    torch::nn::BatchNorm1d alone(kRanksChannels);
    ExpectAsOneProcess(module, alone, set);
    ExpectAsOneProcess(module, alone, set);
  }
  remove_process_set(set);
}

}  // namespace
}  // namespace hvdlite
