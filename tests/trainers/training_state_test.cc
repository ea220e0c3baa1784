#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/training.h"

namespace hvdlite::trainers {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr char kModelName[] = "a linear layer";

class TrainingStateTest : public testing::Test {
 protected:
  // Only rank 0 writes, and so every rank may have a directory of its own.
  TrainingStateTest() : checkpoint_(directory_ / "checkpoint.pt") {}

  void Save(int64_t done) {
    SaveIfDue({.max_steps = 7, .checkpoint = checkpoint_}, kSteps, done,
              kModelName, *model_, optimizer_);
  }
  bool saved() const { return std::filesystem::exists(checkpoint_); }

  static constexpr StepRange kSteps = {.first = 0, .last = 7, .per_epoch = 5};
  const TemporaryDirectory directory_;
  const std::string checkpoint_;
  torch::nn::Linear model_{2, 2};
  torch::optim::SGD optimizer_{model_->parameters(), 0.1};
};

TEST_F(TrainingStateTest, RankZeroSavesAndAllRanksGoOnFromThere) {
  Save(7);
  EXPECT_EQ(saved(), rank() == 0);
  const RunFlags run = {.epochs = 3, .resume = checkpoint_};
  const StepRange steps = Resume(run, kModelName, 5, *model_, optimizer_);
  EXPECT_EQ(steps.first, 7);
  EXPECT_EQ(steps.last, 15);
  EXPECT_THAT([&] { Resume(run, kModelName, 4, *model_, optimizer_); },
              ThrowsMessage<std::runtime_error>(HasSubstr("epoch of 5 steps")));
}

TEST_F(TrainingStateTest, ParametersThatAreNotFiniteAreNotSaved) {
  {
    const torch::NoGradGuard no_grad;
    model_->bias[1] = std::nan("");
  }
  EXPECT_THAT([&] { Save(7); }, ThrowsMessage<std::runtime_error>(HasSubstr(
                                    "'bias' has values that are not finite")));
  EXPECT_FALSE(saved());
}

}  // namespace
}  // namespace hvdlite::trainers
