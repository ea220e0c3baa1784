#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/checkpoint_file.h"
#include "base/commit_store.h"
#include "base/environment.h"
#include "base/launcher_environment.h"
#include "support/input_error.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/program.h"
#include "trainers/training.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr char kModelName[] = "a linear layer";

class TrainingStateTest : public ::testing::Test {
 protected:
  // Only rank 0 writes, so every rank can have its own directory.
  TrainingStateTest() : checkpoint_(directory_ / "checkpoint.pt") {}

  RunFlags Flags() const { return {.epochs = 3, .checkpoint = checkpoint_}; }
  // Begins a run with epochs of 5 steps.
  std::unique_ptr<Checkpoints> Running(const RunFlags& run) {
    auto checkpoints = std::make_unique<Checkpoints>(
        run, kModelName, *model_, optimizer_, sampler_,
        [this] { return seconds_; }, /*stoppable=*/true, environment_);
    steps_ = checkpoints->Begin();
    return checkpoints;
  }
  void SaveThreeSteps(const RunFlags& run) {
    const auto checkpoints = Running(run);
    Step(*checkpoints, 3);
    checkpoints->Finish();
  }
  // Begins as a restarted job that first started at `job_start`.
  void StartAgain(const RunFlags& run, int64_t job_start) {
    environment_ = base::FakeEnvironment(
        {{base::kRestartsVariable, "1"},
         {base::kJobStartVariable, std::to_string(job_start)}});
    sampler_.resume(0, 0);
    Running(run);
  }
  void SetDone(int64_t steps) {
    sampler_.resume(steps / 5, steps % 5 * size());
  }
  bool Step(Checkpoints& checkpoints, int64_t done) {
    SetDone(done);
    return checkpoints.AfterStep(done);
  }
  void EndEpoch(Checkpoints& checkpoints, int64_t done) {
    SetDone(done);
    checkpoints.AfterEpoch(done);
  }
  // The number of completed steps after a resume at this point.
  int64_t Saved() {
    const DistributedSampler sampler = sampler_;
    RunFlags run = Flags();
    run.resume = "auto";
    Checkpoints reader(run, kModelName, *model_, optimizer_, sampler_,
                       support::WallSeconds, /*stoppable=*/false, environment_);
    const int64_t steps = reader.Begin().first;
    sampler_ = sampler;
    return steps;
  }
  void SpoilParameters() {
    const torch::NoGradGuard no_grad;
    model_->bias[1] = std::nan("");
  }

  const TemporaryDirectory directory_;
  const std::string checkpoint_;
  double seconds_ = 1000;
  torch::nn::Linear model_{2, 2};
  torch::optim::SGD optimizer_{model_->parameters(), 0.1};
  DistributedSampler sampler_{5 * size(), 1, 1};
  StepRange steps_;
  base::Environment environment_ = base::FakeEnvironment({});
};

TEST_F(TrainingStateTest, RankZeroSavesAndAllRanksContinue) {
  RunFlags run = Flags();
  run.max_steps = 7;
  {
    const auto checkpoints = Running(run);
    EXPECT_EQ(steps_.last, 7);
    EndEpoch(*checkpoints, 7);
    checkpoints->Finish();
  }
  EXPECT_EQ(std::filesystem::exists(checkpoint_), rank() == 0);
  sampler_.resume(0, 0);
  run = {.epochs = 3, .resume = checkpoint_};
  Running(run);
  EXPECT_EQ(steps_.first, 7);
  EXPECT_EQ(steps_.last, 15);
  EXPECT_EQ(sampler_.epoch(), 1);
  EXPECT_EQ(sampler_.position(), 2 * size());
  EXPECT_THAT(
      [&] {
        Checkpoints(run, "another", *model_, optimizer_, sampler_).Begin();
      },
      ThrowsMessage<support::InputError>(
          AllOf(HasSubstr(rank() == 0 ? checkpoint_ : "checkpoint.pt"),
                HasSubstr("holds a linear layer"))));
  run.resume = "/nonexistent/c.pt";
  EXPECT_THAT([&] { Running(run); }, ThrowsMessage<support::InputError>(
                                         HasSubstr("'/nonexistent/c.pt'")));
}

TEST_F(TrainingStateTest, RankZeroWarnsOfBatchLargerThanTheDataSet) {
  const auto told = [&] {
    ::testing::internal::CaptureStderr();
    Running(Flags());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(told(), "");
  sampler_ = DistributedSampler(5 * size(), 5, 1);
  EXPECT_EQ(told(), "");
  sampler_ = DistributedSampler(5 * size(), 6, 1);
  const std::string text = told();
  EXPECT_EQ(text.empty(), rank() > 0);
  if (rank() == 0) {
    EXPECT_THAT(text, HasSubstr("a batch of " + std::to_string(6 * size()) +
                                " is more than the data set has: every step "
                                "takes all " +
                                std::to_string(5 * size()) + " samples"));
  }
  EXPECT_EQ(steps_.last, 3);
}

TEST_F(TrainingStateTest, RestartedJobContinuesWithoutAFlag) {
  RunFlags run = Flags();
  run.checkpoint_every_steps = 1;
  SaveThreeSteps(run);
  sampler_.resume(0, 0);
  Running(run);
  EXPECT_EQ(steps_.first, 0);
  environment_ = base::FakeEnvironment({{base::kRestartsVariable, "1"}});
  Running(run);
  EXPECT_EQ(steps_.first, 3);
}

TEST_F(TrainingStateTest, RestartedJobReplacesOlderFiles) {
  RunFlags run = Flags();
  run.checkpoint_every_steps = 1;
  run.overwrite = true;
  SaveThreeSteps(run);
  const int64_t now = time(nullptr);
  StartAgain(run, now - 60);
  EXPECT_EQ(steps_.first, 3);
  // The file of --resume is used even if it is older than the job.
  run.resume = "auto";
  StartAgain(run, now + 60);
  EXPECT_EQ(steps_.first, 3);
  run.resume = "";
  StartAgain(run, now + 60);
  EXPECT_EQ(steps_.first, 0);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_));
}

TEST_F(TrainingStateTest, SinglePreviousGenerationIsReplaced) {
  RunFlags run = Flags();
  run.checkpoint_every_steps = 1;
  run.overwrite = true;
  const std::string previous = base::PreviousGeneration(checkpoint_);
  const int64_t now = time(nullptr);
  SaveThreeSteps(run);
  if (rank() == 0) std::filesystem::rename(checkpoint_, previous);
  StartAgain(run, now - 60);
  EXPECT_EQ(steps_.first, 3);
  StartAgain(run, now + 60);
  EXPECT_EQ(steps_.first, 0);
  EXPECT_FALSE(std::filesystem::exists(previous));
  // An old file is removed, but this job's own file stays.
  SaveThreeSteps(run);
  if (rank() == 0) {
    std::filesystem::copy_file(checkpoint_, previous);
    std::filesystem::last_write_time(
        previous,
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  StartAgain(run, now - 60);
  EXPECT_EQ(steps_.first, 3);
  EXPECT_FALSE(std::filesystem::exists(previous));
}

// Not only rank 0 excludes the time, for which the others would wait in the
// next step.
TEST_F(TrainingStateTest, AllRanksExcludeTheTimeOfRankZerosCheckpoint) {
  torch::nn::Linear large(4096, 2048);
  torch::optim::SGD optimizer(large->parameters(), 0.1);
  RunFlags run = Flags();
  run.checkpoint_every_steps = 1;
  Checkpoints checkpoints(run, kModelName, *large, optimizer, sampler_,
                          [this] { return seconds_; });
  steps_ = checkpoints.Begin();
  EXPECT_EQ(checkpoints.TakeSavingSeconds(), 0);
  // One success is enough, since ranks do not begin at the same time.
  bool left_out = false;
  for (int attempt = 0; attempt < 20 && !left_out; ++attempt) {
    barrier();
    Step(checkpoints, 1);
    const double own = checkpoints.TakeSavingSeconds();
    const double of_zero = SumOverRanks({rank() == 0 ? own : 0}).front();
    const double of_all = SumOverRanks({own}).front();
    EXPECT_GT(of_zero, 0);
    left_out = of_all > 0.75 * size() * of_zero;
  }
  EXPECT_TRUE(left_out);
  checkpoints.Finish();
}

TEST_F(TrainingStateTest, CommitsToTheStoreCountAsSteps) {
  const auto store = base::CommitStore::Start("127.0.0.1");
  ASSERT_TRUE(store.ok()) << store.status();
  environment_ = base::FakeEnvironment(
      {{base::kCommitStoreVariable, (*store)->address()}});
  const auto checkpoints = Running({.epochs = 3});
  Step(*checkpoints, 1);
  EXPECT_EQ(checkpoints->TakeSavingSeconds(), 0);
  checkpoints->Finish();
}

TEST_F(TrainingStateTest, EveryStepIsCommittedToTheLaunchersStore) {
  const auto store = base::CommitStore::Start("127.0.0.1");
  ASSERT_TRUE(store.ok()) << store.status();
  // Only rank 0's commits are used.
  environment_ =
      base::FakeEnvironment({{base::kCommitStoreVariable, (*store)->address()},
                             {base::kRestartsVariable, "2"}});
  RunFlags run = {.epochs = 3};
  for (int64_t done = 0; done < 4; ++done) {
    const auto checkpoints = Running(run);
    EXPECT_EQ(steps_.first, done);
    Step(*checkpoints, done + 1);
    checkpoints->Finish();
  }
  run.commit_every_steps = 2;
  {
    const auto checkpoints = Running(run);
    EXPECT_EQ(steps_.first, 4);
    EndEpoch(*checkpoints, 5);
    Step(*checkpoints, 6);
    Step(*checkpoints, 7);
    checkpoints->Finish();
  }
  Running(run);
  EXPECT_EQ(steps_.first, 6);
}

TEST_F(TrainingStateTest, ResumeAutoNeedsACheckpointName) {
  EXPECT_EQ(Saved(), 0);  // no checkpoint exists yet
  EXPECT_THAT([&] { BeginRun({.resume = "auto"}); },
              ThrowsMessage<support::InputError>(HasSubstr("--checkpoint")));
}

TEST_F(TrainingStateTest, SavesEveryFewStepsAndAtEndsOfEpochs) {
  RunFlags run = Flags();
  run.checkpoint_every = 100;
  run.checkpoint_every_steps = 2;
  std::vector<int64_t> saved;
  for (int64_t done = 1; done <= 12; ++done) {
    SetDone(0);
    {
      const auto checkpoints = Running(run);
      Step(*checkpoints, done);
      if (done == 10) EndEpoch(*checkpoints, done);
    }
    if (std::filesystem::remove(checkpoint_)) saved.push_back(done);
  }
  EXPECT_EQ(saved, rank() == 0 ? std::vector<int64_t>({2, 4, 6, 8, 10, 12})
                               : std::vector<int64_t>());
}

TEST_F(TrainingStateTest, SavesAfterSomeMinutes) {
  RunFlags run = Flags();
  run.checkpoint_every_minutes = 0.5;
  const auto checkpoints = Running(run);
  seconds_ += 29;
  Step(*checkpoints, 1);
  EXPECT_EQ(Saved(), 0);
  if (rank() == 0) seconds_ += 1;  // only rank 0's clock counts
  Step(*checkpoints, 2);
  Step(*checkpoints, 3);
  checkpoints->Finish();
  EXPECT_EQ(Saved(), 3);
  Step(*checkpoints, 4);
  checkpoints->Finish();
  EXPECT_EQ(Saved(), 3);
}

// Until the end of an epoch each rank has its own statistics of batch
// normalisation.
TEST_F(TrainingStateTest, EachRankContinuesWithItsOwnBuffers) {
  torch::nn::BatchNorm1d model(2);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const auto begin = [&](const RunFlags& run, bool stoppable = true) {
    SetDone(0);
    auto checkpoints = std::make_unique<Checkpoints>(
        run, kModelName, *model, optimizer, sampler_,
        [this] { return seconds_; }, stoppable, environment_);
    checkpoints->Begin();
    return checkpoints;
  };
  const auto set = [&](double value) {
    model->running_mean.fill_(value);
    model->running_var.fill_(10 * value);
    model->num_batches_tracked.fill_(static_cast<int64_t>(value));
  };
  const auto expect_own = [&](double value) {
    set(-1);
    RunFlags run = Flags();
    run.resume = "auto";
    begin(run, /*stoppable=*/false);
    EXPECT_EQ(model->running_mean[1].item<double>(), value);
    EXPECT_EQ(model->running_var[0].item<double>(), 10 * value);
    EXPECT_EQ(model->num_batches_tracked.item<int64_t>(), value);
  };
  RunFlags run = Flags();
  run.checkpoint_every_steps = 2;
  run.checkpoint_every_minutes = 1;
  {
    const auto checkpoints = begin(run);
    set(3 + rank());
    Step(*checkpoints, 2);
    checkpoints->Finish();
    expect_own(3 + rank());
  }
  {  // at a checkpoint by minutes
    const auto checkpoints = begin(run);
    seconds_ += 60;
    Step(*checkpoints, 1);
    set(5 + rank());
    Step(*checkpoints, 3);
    checkpoints->Finish();
    expect_own(5 + rank());
  }
  {  // at the end by a signal
    const auto checkpoints = begin(run);
    std::raise(SIGTERM);
    Step(*checkpoints, 1);
    set(7 + rank());
    EXPECT_TRUE(Step(*checkpoints, 3));
    EXPECT_THROW(checkpoints->Finish(), SharedError);
    expect_own(7 + rank());
  }
  {  // at the end within an epoch
    run.max_steps = 4;
    const auto checkpoints = begin(run);
    set(9 + rank());
    Step(*checkpoints, 4);
    checkpoints->KeepOwnBuffers(4);
    AverageBuffers(*model);
    EndEpoch(*checkpoints, 4);
    checkpoints->Finish();
    expect_own(9 + rank());
  }
}

TEST_F(TrainingStateTest, NonFiniteParametersAreNotSaved) {
  RunFlags run = Flags();
  run.checkpoint_every_steps = 1;
  const auto checkpoints = Running(run);
  SpoilParameters();
  EXPECT_THAT([&] { EndEpoch(*checkpoints, 5); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("'bias' has values that are not finite")));
  ::testing::internal::CaptureStderr();
  Step(*checkpoints, 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(rank() == 0 ? "'bias' has values" : ""));
  checkpoints->Finish();
  EXPECT_FALSE(std::filesystem::exists(checkpoint_));
}

TEST_F(TrainingStateTest, SignalToOneRankStopsAllAfterTheSameStep) {
  RunFlags run = Flags();
  run.max_steps = 7;
  const auto checkpoints = Running(run);
  EXPECT_FALSE(Step(*checkpoints, 1));
  if (rank() == size() - 1) std::raise(SIGUSR1);
  EXPECT_FALSE(Step(*checkpoints, 2));
  EXPECT_TRUE(Step(*checkpoints, 3));
  EXPECT_THAT([&] { checkpoints->Finish(); },
              ThrowsMessage<SharedError>(
                  HasSubstr("stopped after 3 of 7 steps by User defined")));
  EXPECT_EQ(Saved(), 3);
}

TEST_F(TrainingStateTest, SignalInTheLastStepHasNoEffect) {
  RunFlags run = Flags();
  run.max_steps = 7;
  const auto checkpoints = Running(run);
  std::raise(SIGTERM);
  EXPECT_FALSE(Step(*checkpoints, 6));
  EXPECT_FALSE(Step(*checkpoints, 7));
  checkpoints->Finish();
}

TEST_F(TrainingStateTest, OnlyTheLastFailedSaveIsAnError) {
  RunFlags run = Flags();
  run.checkpoint = directory_ / "directory" / "c.pt";
  const auto checkpoints = Running(run);
  EndEpoch(*checkpoints, 5);  // only warns
  EXPECT_THAT([&] { checkpoints->Finish(); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("c.pt"), HasSubstr("rank 0"))));
  std::filesystem::create_directory(directory_ / "directory");
  EndEpoch(*checkpoints, 10);
  checkpoints->Finish();
  EXPECT_EQ(std::filesystem::exists(run.checkpoint), rank() == 0);
}

TEST(ComputingTest, SetsThreadsAndOneDnnRepeatedly) {
  const ComputeFlags flags = {
      .threads = 2, .inter_op_threads = 3, .no_onednn = true};
  for (int world = 0; world < 2; ++world) {
    SetUpComputing(flags);
    EXPECT_EQ(at::get_num_threads(), 2);
    EXPECT_EQ(at::get_num_interop_threads(), 3);
    EXPECT_FALSE(at::globalContext().userEnabledMkldnn());
  }
  SetUpComputing(ComputeFlags());
  EXPECT_TRUE(at::globalContext().userEnabledMkldnn());
}

}  // namespace
}  // namespace hvdlite::trainers
