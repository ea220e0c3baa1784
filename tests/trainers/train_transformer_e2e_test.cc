// Runs train_transformer as a user does, on one and two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/trainer_contract.h"

namespace hvdlite::trainers {

// A small model with a fast warm-up of the learning rate.
const Trainer kTrainer = {
    .program = "train_transformer",
    .generate =
        "generate_pssp --proteins 300 --test-proteins 20 --max-length 40",
    .flags =
        "--d-model 32 --d-inner 64 --heads 2 --d-k 16 --layers 1 "
        "--global-batch-size 8 --warmup-steps 30 --dropout 0.1 --profile",
    .epoch_steps = 35,
    .evaluation_line = " test_loss: ",
    .diverging = "--warmup-steps 1 --lr-factor 1e30",
    .least_accuracy = 0.6,  // majority: 0.38
    .tolerance = 1e-3};

namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const nlohmann::json& Whole() { return TrainerRuns::Get().whole; }

std::string Command(const std::string& flags) {
  return TrainerRuns::Get().Command(flags);
}

double LastLoss(const nlohmann::json& report) {
  return report["loss"]["last"].get<double>();
}

class TrainTransformerTest : public ::testing::Test {
 protected:
  const TemporaryDirectory scratch_;
};

// Dropout depends on the proteins.
TEST_F(TrainTransformerTest, RanksComputeTheSameAsOneProcess) {
  const std::vector<nlohmann::json> reports =
      Train({Alone(Command("")), OnRanks(2, Command("--deal random")),
             Alone(Command("--epochs 1 --attention-dropout 0"))});
  for (const size_t other : {0, 1}) {
    EXPECT_NEAR(LastLoss(reports[other]), LastLoss(Whole()),
                kTrainer.tolerance);
    EXPECT_NEAR(reports[other]["evaluation"]["loss"],
                Whole()["evaluation"]["loss"], kTrainer.tolerance);
    EXPECT_NE(reports[other]["parameter_digests"][0],
              Whole()["parameter_digests"][0]);
  }
  EXPECT_GT(
      std::abs(LastLoss(reports[2]) - Whole()["loss"]["first"].get<double>()),
      1e-3);
}

TEST_F(TrainTransformerTest, RankZeroPrintsEpochsAndTheHottestOperators) {
  const std::string output = Whole()["output"];
  EXPECT_THAT(
      output,
      ContainsRegex("\\[001/002\\] train_loss +[0-9]+\\.[0-9]{3} test_loss: "
                    "+[0-9]+\\.[0-9]{3} train_acc [01]\\.[0-9]{3} test_acc "
                    "[01]\\.[0-9]{3} time [0-9]+\\.[0-9] sec\n"));
  EXPECT_THAT(output, HasSubstr("step 1/"));
  EXPECT_EQ(CountOccurrences(output, "\033"), 0);  // not a terminal
  EXPECT_EQ(CountOccurrences(output, "self s"), 1);
  EXPECT_THAT(output, ContainsRegex("\naten::[a-z_]+ +[0-9]+ "));
}

TEST_F(TrainTransformerTest, CheckpointOfAnotherModelIsAnError) {
  const Finished training =
      RunCommand(Alone(Command("--heads 4 --d-k 8 --resume " +
                               TrainerRuns::Get().last_checkpoint.string())));
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_THAT(training.output, HasSubstr("heads 2, d_k 16"));
}

TEST_F(TrainTransformerTest, NoTestLineWithoutATest) {
  const std::string page = scratch_ / "report.html";
  const nlohmann::json report =
      Train({Alone(Command("--max-steps 1 --no-test --report-html " + page))})
          .front();
  EXPECT_THAT(report["output"].get<std::string>(),
              ContainsRegex("train_loss +[0-9.]+ train_acc [0-9.]+ time"));
  EXPECT_FALSE(report.contains("evaluation"));
  EXPECT_THAT(FileBytes(page), HasSubstr("<polyline"));
}

TEST_F(TrainTransformerTest, LanguageModelLearnsAText) {
  const std::string text = scratch_ / "text";
  std::ofstream file(text);
  for (int i = 0; i < 200; ++i) file << "the quick brown fox " << i % 7;
  file.close();
  const std::string command =
      Command("--task lm --context 32 --epochs 4 --text " + text);
  const std::vector<nlohmann::json> reports =
      Train({Alone(command), OnRanks(2, command), Alone(command + " --bf16"),
             Alone(Command("--bf16"))});
  for (const nlohmann::json& report : reports) {
    EXPECT_LT(LastLoss(report), 0.9 * report["loss"]["first"].get<double>())
        << report["settings"];
  }
  EXPECT_NEAR(reports[1]["loss"]["first"], reports[0]["loss"]["first"], 1e-4);
  EXPECT_EQ(reports[1]["parameters_identical"], true);
  // Trains both tasks in bfloat16; losses must be close to those in float.
  EXPECT_NE(LastLoss(reports[2]), LastLoss(reports[0]));
  EXPECT_NEAR(LastLoss(reports[3]), LastLoss(Whole()), 0.1);
  EXPECT_GT(std::abs(LastLoss(reports[3]) - LastLoss(Whole())), 1e-5);
}

TEST_F(TrainTransformerTest, GlobalBatchSmallerThanRanksIsAnError) {
  const Finished training =
      RunCommand(OnRanks(2, Command("--global-batch-size 1")));
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "--global-batch-size 1"), 1)
      << training.output;
}

}  // namespace
}  // namespace hvdlite::trainers
