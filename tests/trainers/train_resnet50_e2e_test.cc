// Runs train_resnet50 as a user does, on CIFAR-10.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/trainer_contract.h"

namespace hvdlite::trainers {

const Trainer kTrainer = {
    .program = "train_resnet50",
    .generate = "generate_cifar10 --train-images 630 --test-images 201",
    .flags =
        "--arch resnet8 --global-batch-size 32 --lr 0.025 "
        "--warmup-epochs 1 --lr-steps 1.2 --log-interval 5",
    .epoch_steps = 20,
    .evaluation_line = " evaluation loss ",
    .diverging = "--lr 1e30 --warmup-epochs 0 --log-interval 1",
    .least_accuracy = 0.7};

namespace {

using ::testing::HasSubstr;

std::string Command(const std::string& flags) {
  return TrainerRuns::Get().Command(flags);
}

TEST(TrainResnet50Test, IntervalsAreNumberedByStepsOfTheRun) {
  const nlohmann::json& whole = TrainerRuns::Get().whole;
  EXPECT_EQ(whole["loss"]["intervals"].size(), 8U);
  EXPECT_EQ(whole["evaluation"]["images"], 201);
  EXPECT_EQ(CountOccurrences(whole["output"], "epoch 2/2 step 40/40 "), 1);
}

TEST(TrainResnet50Test, RanksDifferWithoutSynchronisation) {
  const TemporaryDirectory scratch;
  const std::string trace = scratch / "trace.json";
  for (const nlohmann::json& report :
       Train({OnRanks(2, Command("--no-sync --max-steps 3")),
              "HVDLITE_TIMELINE=" + trace + " " +
                  OnRanks(2, Command("--barrier-only --max-steps 3"))})) {
    EXPECT_EQ(report["parameters_identical"], false) << report["settings"];
  }
  // With --barrier-only, ranks meet in every step, and at the start of the
  // timeline.
  EXPECT_EQ(CountOccurrences(FileBytes(trace), "\"name\":\"BARRIER\""),
            (1 + 3) * 2);
}

TEST(TrainResnet50Test, GlobalBatchSmallerThanRanksIsAnError) {
  const Finished training =
      RunCommand(OnRanks(2, kPrograms + "train_resnet50 --synthetic --arch "
                                        "resnet8 --global-batch-size 1"));
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output,
                             "--global-batch-size 1 is less than the number "
                             "of ranks, 2"),
            1)
      << training.output;
}

TEST(TrainResnet50Test, FlagsForDirectoriesAreErrorsWithCifar10) {
  const std::vector<std::string> refused = {
      "--image-size 64", "--train-domains photo", "--augmentation imagenet",
      "--skip-unreadable"};
  std::vector<std::string> commands;
  for (const std::string& flags : refused) {
    commands.push_back(Alone(Command(flags)));
  }
  const std::vector<Finished> trainings = RunCommands(commands);
  for (size_t i = 0; i < refused.size(); ++i) {
    EXPECT_EQ(trainings[i].exit_code, 2) << trainings[i].output;
    EXPECT_THAT(trainings[i].output,
                HasSubstr(refused[i].substr(0, refused[i].find(' '))));
    EXPECT_THAT(trainings[i].output, HasSubstr("CIFAR-10"));
  }
}

}  // namespace
}  // namespace hvdlite::trainers
