#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/testing/fakes/temporary_directory.h"
#include "tools/support/input_error.h"
#include "trainers/program.h"
#include "trainers/training.h"

namespace hvdlite::trainers {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr char kModelName[] = "a linear layer";

class TrainingStateTest : public testing::Test {
 protected:
  // Only rank 0 writes, and so every rank may have a directory of its own.
  TrainingStateTest() : checkpoint_(directory_ / "checkpoint.pt") {}

  RunFlags Flags() const { return {.epochs = 3, .checkpoint = checkpoint_}; }
  Checkpoints Saving(const RunFlags& run, const StepRange& steps = kSteps) {
    return {run,     steps,      kModelName,
            *model_, optimizer_, [this] { return seconds_; }};
  }
  // The steps that a run which was resumed here would have behind it.
  int64_t Saved() {
    RunFlags run = Flags();
    run.resume = "auto";
    return Resume(run, kModelName, 5, *model_, optimizer_).first;
  }
  void SpoilParameters() {
    const torch::NoGradGuard no_grad;
    model_->bias[1] = std::nan("");
  }

  static constexpr StepRange kSteps = {.first = 0, .last = 7, .per_epoch = 5};
  const TemporaryDirectory directory_;
  const std::string checkpoint_;
  double seconds_ = 1000;
  torch::nn::Linear model_{2, 2};
  torch::optim::SGD optimizer_{model_->parameters(), 0.1};
};

TEST_F(TrainingStateTest, RankZeroSavesAndAllRanksGoOnFromThere) {
  Saving(Flags()).AfterEpoch(7);
  EXPECT_EQ(std::filesystem::exists(checkpoint_), rank() == 0);
  RunFlags run = {.epochs = 3, .resume = checkpoint_};
  const StepRange steps = Resume(run, kModelName, 5, *model_, optimizer_);
  EXPECT_EQ(steps.first, 7);
  EXPECT_EQ(steps.last, 15);
  EXPECT_THAT(
      [&] { Resume(run, kModelName, 4, *model_, optimizer_); },
      ThrowsMessage<support::InputError>(HasSubstr("epoch of 5 steps")));
  EXPECT_THAT([&] { Resume(run, "another", 5, *model_, optimizer_); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr(rank() == 0 ? checkpoint_ : "checkpoint.pt"),
                        HasSubstr("holds a linear layer"))));
  run.resume = "/nonexistent/c.pt";
  EXPECT_THAT(
      [&] { Resume(run, kModelName, 5, *model_, optimizer_); },
      ThrowsMessage<support::InputError>(HasSubstr("'/nonexistent/c.pt'")));
}

TEST_F(TrainingStateTest, GoesOnFromACheckpointOfTheFirstRelease) {
  torch::serialize::OutputArchive archive;
  WriteState(archive, kModelName, *model_, optimizer_, kSteps.After(6));
  archive.save_to(checkpoint_);
  EXPECT_EQ(Saved(), 6);
}

TEST_F(TrainingStateTest, ResumingAutomaticallyNeedsTheNameOfACheckpoint) {
  EXPECT_EQ(Saved(), 0);  // there is none yet
  EXPECT_THAT([&] { BeginRun({.resume = "auto"}); },
              ThrowsMessage<support::InputError>(HasSubstr("--checkpoint")));
}

TEST_F(TrainingStateTest, SavesAfterSoManyStepsWithinEpochsAndAtTheirEnds) {
  RunFlags run = Flags();
  run.checkpoint_every = 100;
  run.checkpoint_every_steps = 2;
  const StepRange steps = {.first = 0, .last = 30, .per_epoch = 10};
  std::vector<int64_t> saved;
  {
    for (int64_t done = 1; done <= 12; ++done) {
      {
        Checkpoints checkpoints = Saving(run, steps);
        checkpoints.AfterStep(done);
        if (done == 10) checkpoints.AfterEpoch(done);
      }
      if (std::filesystem::remove(checkpoint_)) saved.push_back(done);
    }
  }
  EXPECT_EQ(saved, rank() == 0 ? std::vector<int64_t>({2, 4, 6, 8, 10, 12})
                               : std::vector<int64_t>());
}

TEST_F(TrainingStateTest, SavesOnceTheLastCheckpointIsSoManyMinutesOld) {
  RunFlags run = Flags();
  run.checkpoint_every_minutes = 0.5;
  Checkpoints checkpoints = Saving(run);
  seconds_ += 29;
  checkpoints.AfterStep(1);
  EXPECT_EQ(Saved(), 0);
  seconds_ += 1;
  checkpoints.AfterStep(2);
  checkpoints.Finish();
  EXPECT_EQ(Saved(), 2);
  checkpoints.AfterStep(3);
  checkpoints.Finish();
  EXPECT_EQ(Saved(), 2);
}

TEST_F(TrainingStateTest, ParametersThatAreNotFiniteAreNotSaved) {
  RunFlags run = Flags();
  run.checkpoint_every_steps = 1;
  Checkpoints checkpoints = Saving(run);
  SpoilParameters();
  EXPECT_THAT([&] { checkpoints.AfterEpoch(7); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("'bias' has values that are not finite")));
  testing::internal::CaptureStderr();
  checkpoints.AfterStep(1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr(rank() == 0 ? "'bias' has values" : ""));
  checkpoints.Finish();
  EXPECT_FALSE(std::filesystem::exists(checkpoint_));
}

TEST_F(TrainingStateTest, ASignalToOneRankStopsAllAfterTheSameStep) {
  Checkpoints checkpoints = Saving(Flags());
  EXPECT_FALSE(checkpoints.AfterStep(1));
  if (rank() == size() - 1) std::raise(SIGUSR1);
  EXPECT_FALSE(checkpoints.AfterStep(2));
  EXPECT_TRUE(checkpoints.AfterStep(3));
  EXPECT_THAT([&] { checkpoints.Finish(); },
              ThrowsMessage<StoppedEarly>(
                  HasSubstr("stopped after 3 of 7 steps by User defined")));
  EXPECT_EQ(Saved(), 3);
}

TEST_F(TrainingStateTest, ASignalInTheLastStepIsTooLate) {
  Checkpoints checkpoints = Saving(Flags());
  std::raise(SIGTERM);
  EXPECT_FALSE(checkpoints.AfterStep(6));
  EXPECT_FALSE(checkpoints.AfterStep(7));
  checkpoints.Finish();
}

TEST_F(TrainingStateTest, SaveThatFailsEndsTheTrainingOnlyIfItWasTheLast) {
  RunFlags run = Flags();
  run.checkpoint = directory_ / "folder" / "c.pt";
  Checkpoints checkpoints = Saving(run);
  checkpoints.AfterEpoch(5);  // warns
  EXPECT_THAT([&] { checkpoints.Finish(); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("c.pt"), HasSubstr("on rank 0"))));
  std::filesystem::create_directory(directory_ / "folder");
  checkpoints.AfterEpoch(7);
  checkpoints.Finish();
  EXPECT_EQ(std::filesystem::exists(run.checkpoint), rank() == 0);
}

}  // namespace
}  // namespace hvdlite::trainers
