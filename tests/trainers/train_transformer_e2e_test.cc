// Runs train_transformer as a user does, on one and two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/testing/fakes/temporary_directory.h"
#include "tests/testing/run_command.h"

namespace hvdlite::trainers {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

const std::string kTrain = HVDLITE_TEST_BIN_DIR "/train_transformer";
const std::string kGenerate = HVDLITE_TEST_BIN_DIR "/generate_pssp";

// A small model, whose learning rate rises fast.
constexpr char kSmall[] =
    " --d-model 32 --d-inner 64 --heads 2 --d-k 16 --layers 1 "
    "--global-batch-size 8 "
    "--warmup-steps 30 --dropout 0.1 ";

class TrainTransformerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new TemporaryDirectory();
    const Finished generated =
        RunCommand(kGenerate + " --output " + data_->path().string() +
                   " --proteins 100 --test-proteins 20 --max-length 40");
    ASSERT_EQ(generated.exit_code, 0) << generated.output;
    std::ofstream text(*data_ / "text");
    for (int i = 0; i < 200; ++i) text << "the quick brown fox " << i % 7;
  }
  static void TearDownTestSuite() { delete data_; }

  Finished Run(int ranks, const std::string& flags) {
    return RunCommand(kMpirun + " " + std::to_string(ranks) + " " + kTrain +
                      kSmall + flags);
  }
  static std::string Proteins() {
    return "--data-dir " + data_->path().string() + " ";
  }

  nlohmann::json Train(int ranks, const std::string& flags) {
    const std::string report = scratch_ / "report.json";
    const Finished training =
        Run(ranks, flags + " --overwrite --report " + report);
    EXPECT_EQ(training.exit_code, 0) << training.output;
    return ReadReport(report);
  }

  static TemporaryDirectory* data_;
  const TemporaryDirectory scratch_;
};

TemporaryDirectory* TrainTransformerTest::data_ = nullptr;

TEST_F(TrainTransformerTest, CheckedDataIsNotTrainedOn) {
  const Finished check = Run(2, Proteins() + "--check-data");
  EXPECT_EQ(check.exit_code, 0) << check.output;
  EXPECT_EQ(CountOccurrences(check.output, "all of it can be read\n"), 1)
      << check.output;
  EXPECT_EQ(CountOccurrences(check.output, "loss"), 0) << check.output;
}

TEST_F(TrainTransformerTest, LearnsStructuresOnOneAndTwoRanks) {
  for (const int ranks : {1, 2}) {
    const nlohmann::json report = Train(ranks, Proteins() + "--epochs 12");
    EXPECT_EQ(report["world_size"], ranks);
    EXPECT_LT(report["loss"]["last"],
              0.8 * report["loss"]["first"].get<double>());
    EXPECT_GT(report["evaluation"]["accuracy"], 0.5);  // majority: 0.38
    EXPECT_EQ(report["parameters_identical"], true);
  }
}

// With dropout, which is that of the proteins.
TEST_F(TrainTransformerTest, RanksComputeWhatOneProcessWould) {
  const std::string flags = Proteins() + "--epochs 1 ";
  const nlohmann::json alone = Train(1, flags);
  EXPECT_GT(std::abs(Train(1, flags + "--attention-dropout 0")["loss"]["last"]
                         .get<double>() -
                     alone["loss"]["last"].get<double>()),
            1e-3);
  for (const int ranks : {2, 3}) {
    const nlohmann::json together = Train(ranks, flags);
    EXPECT_NEAR(together["loss"]["last"], alone["loss"]["last"], 1e-4);
    EXPECT_NEAR(together["evaluation"]["loss"], alone["evaluation"]["loss"],
                1e-4);
    const nlohmann::json random = Train(ranks, flags + "--deal random");
    EXPECT_NEAR(random["loss"]["last"], alone["loss"]["last"], 1e-4);
    EXPECT_NE(random["parameter_digests"], together["parameter_digests"]);
  }
}

TEST_F(TrainTransformerTest, ResumedRunEqualsAnUninterruptedOne) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  const nlohmann::json whole = Train(2, Proteins() + "--epochs 2");
  for (const char* first_part : {"--epochs 1", "--max-steps 15"}) {
    Train(2, Proteins() + first_part + " --checkpoint " + checkpoint);
    const nlohmann::json resumed =
        Train(2, Proteins() + "--epochs 2 --resume " + checkpoint);
    EXPECT_LT(resumed["steps"], whole["steps"]);
    EXPECT_EQ(resumed["parameter_digests"], whole["parameter_digests"])
        << first_part;
    EXPECT_EQ(resumed["evaluation"], whole["evaluation"]) << first_part;
  }
}

TEST_F(TrainTransformerTest, CheckpointOfAnotherModelIsRefused) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  Train(1, Proteins() + "--max-steps 1 --checkpoint " + checkpoint);
  for (const char* other : {"--heads 4 --d-k 8", "--d-inner 32"}) {
    const Finished training =
        Run(1, Proteins() + other + " --resume " + checkpoint);
    EXPECT_EQ(training.exit_code, 2) << training.output;
    EXPECT_THAT(training.output, HasSubstr("heads 2, d_k 16"));
  }
}

TEST_F(TrainTransformerTest, RankZeroPrintsALineForEveryEpoch) {
  const std::string page = scratch_ / "report.html";
  const Finished training =
      Run(2, Proteins() + "--epochs 2 --report-html " + page);
  ASSERT_EQ(training.exit_code, 0) << training.output;
  EXPECT_THAT(
      training.output,
      ContainsRegex("\\[001/002\\] train_loss +[0-9]+\\.[0-9]{3} test_loss: "
                    "+[0-9]+\\.[0-9]{3} train_acc [01]\\.[0-9]{3} test_acc "
                    "[01]\\.[0-9]{3} time [0-9]+\\.[0-9] sec\n"));
  EXPECT_EQ(CountOccurrences(training.output, "test_loss"), 2);
  EXPECT_THAT(training.output, HasSubstr("step 1/"));
  EXPECT_EQ(CountOccurrences(training.output, "\033"), 0);  // not a terminal
  std::ostringstream html;
  html << std::ifstream(page).rdbuf();
  EXPECT_EQ(CountOccurrences(html.str(), "<polyline"), 4);
}

TEST_F(TrainTransformerTest, WithoutATestNothingIsToldOfOne) {
  const std::string report = scratch_ / "report.json";
  const Finished training =
      Run(1, Proteins() + "--max-steps 1 --no-test --report " + report);
  ASSERT_EQ(training.exit_code, 0) << training.output;
  EXPECT_THAT(training.output,
              ContainsRegex("train_loss +[0-9.]+ train_acc [0-9.]+ time"));
  EXPECT_FALSE(ReadReport(report).contains("evaluation"));
}

TEST_F(TrainTransformerTest, LanguageModelLearnsAText) {
  const std::string flags = "--task lm --context 32 --text " +
                            (*data_ / "text").string() + " --epochs 4";
  const nlohmann::json alone = Train(1, flags);
  EXPECT_LT(alone["loss"]["last"], 0.8 * alone["loss"]["first"].get<double>());
  const nlohmann::json together = Train(2, flags);
  EXPECT_NEAR(together["loss"]["first"], alone["loss"]["first"], 1e-4);
  EXPECT_EQ(together["parameters_identical"], true);
}

TEST_F(TrainTransformerTest, LearnsInBfloat16) {
  const std::string text =
      "--task lm --context 32 --text " + (*data_ / "text").string();
  for (const std::string& task : {Proteins(), text}) {
    const nlohmann::json report = Train(2, task + " --bf16 --epochs 3");
    EXPECT_LT(report["loss"]["last"], report["loss"]["first"]) << task;
    EXPECT_EQ(report["parameters_identical"], true) << task;
  }
}

TEST_F(TrainTransformerTest, DivergenceIsAnErrorPrintedOnce) {
  const Finished training =
      Run(2, Proteins() + "--epochs 2 --warmup-steps 1 --lr-factor 1e30");
  EXPECT_EQ(training.exit_code, 1) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "is not finite"), 1)
      << training.output;
}

TEST_F(TrainTransformerTest, ProfilePrintsTheHottestOperatorsOnce) {
  const Finished training = Run(2, Proteins() + "--max-steps 2 --profile");
  ASSERT_EQ(training.exit_code, 0) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "self s"), 1);
  EXPECT_THAT(training.output, ContainsRegex("\naten::[a-z_]+ +[0-9]+ "));
}

TEST_F(TrainTransformerTest, WrongFlagsAndFilesAreErrorsPrintedOnce) {
  for (const auto& [flags, complaint] :
       std::initializer_list<std::pair<std::string, std::string>>{
           {"", "--data-dir"},
           {"--task lm", "--text"},
           {"--task lm --text x --heads 5", "--heads 5"},
           {Proteins() + "--deal turns", "--deal"},
           {"--data-dir /nonexistent/proteins", "/nonexistent/proteins"},
           {Proteins() + "--global-batch-size 1", "--global-batch-size 1"}}) {
    const Finished training = Run(2, flags);
    EXPECT_EQ(training.exit_code, 2) << training.output;
    EXPECT_EQ(CountOccurrences(training.output, complaint), 1)
        << training.output;
  }
}

}  // namespace
}  // namespace hvdlite::trainers
