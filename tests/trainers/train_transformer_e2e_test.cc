// Runs train_transformer as a user does, on one and two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/trainings.h"

namespace hvdlite::trainers {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const std::string kTrain = HVDLITE_TEST_BIN_DIR "/train_transformer";
const std::string kGenerate = HVDLITE_TEST_BIN_DIR "/generate_pssp";

// A small model, whose learning rate rises fast.
constexpr char kSmall[] =
    " --d-model 32 --d-inner 64 --heads 2 --d-k 16 --layers 1 "
    "--global-batch-size 8 "
    "--warmup-steps 30 --dropout 0.1 ";

class TrainTransformerTest : public ::testing::Test {
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

  static std::string Command(const Training& training) {
    return kMpirun + " " + std::to_string(training.first) + " " + kTrain +
           kSmall + training.second;
  }
  static Finished Run(int ranks, const std::string& flags) {
    return RunCommand(Command({ranks, flags}));
  }
  static std::string Proteins() {
    return "--data-dir " + data_->path().string() + " ";
  }

  static TemporaryDirectory* data_;
  static Trainings trainings_;
  const TemporaryDirectory scratch_;
};

TemporaryDirectory* TrainTransformerTest::data_ = nullptr;
Trainings TrainTransformerTest::trainings_(&TrainTransformerTest::Command);

TEST_F(TrainTransformerTest, CheckedDataIsNotTrainedOn) {
  const Finished check = Run(2, Proteins() + "--check-data");
  EXPECT_EQ(check.exit_code, 0) << check.output;
  EXPECT_EQ(CountOccurrences(check.output, "all of it can be read\n"), 1)
      << check.output;
  EXPECT_EQ(CountOccurrences(check.output, "loss"), 0) << check.output;
}

TEST_F(TrainTransformerTest, LearnsStructuresOnOneAndTwoRanks) {
  const std::string flags = Proteins() + "--epochs 12";
  int ranks = 0;
  for (const nlohmann::json& report :
       trainings_.Train({{1, flags}, {2, flags}})) {
    EXPECT_EQ(report["world_size"], ++ranks);
    EXPECT_LT(report["loss"]["last"],
              0.8 * report["loss"]["first"].get<double>());
    EXPECT_GT(report["evaluation"]["accuracy"], 0.5);  // majority: 0.38
    EXPECT_EQ(report["parameters_identical"], true);
  }
}

// With dropout, which is that of the proteins.
TEST_F(TrainTransformerTest, RanksComputeWhatOneProcessWould) {
  const std::string flags = Proteins() + "--epochs 1 ";
  const std::string randomly = flags + "--deal random";
  const std::vector<nlohmann::json> reports =
      trainings_.Train({{1, flags},
                        {1, flags + "--attention-dropout 0"},
                        {2, flags},
                        {2, randomly},
                        {3, flags},
                        {3, randomly}});
  const auto last_loss = [&](size_t training) {
    return reports[training]["loss"]["last"].get<double>();
  };
  EXPECT_GT(std::abs(last_loss(1) - last_loss(0)), 1e-3);
  for (const size_t together : {2, 4}) {
    EXPECT_NEAR(last_loss(together), last_loss(0), 1e-4);
    EXPECT_NEAR(reports[together]["evaluation"]["loss"],
                reports[0]["evaluation"]["loss"], 1e-4);
    const size_t random = together + 1;
    EXPECT_NEAR(last_loss(random), last_loss(0), 1e-4);
    EXPECT_NE(reports[random]["parameter_digests"],
              reports[together]["parameter_digests"]);
  }
}

TEST_F(TrainTransformerTest, ResumedRunEqualsAnUninterruptedOne) {
  const std::string epoch = scratch_ / "epoch.pt";
  const std::string steps = scratch_ / "steps.pt";
  const std::string two_epochs = Proteins() + "--epochs 2";
  const nlohmann::json whole =
      trainings_
          .Train({{2, two_epochs},
                  {2, Proteins() + "--epochs 1 --checkpoint " + epoch},
                  {2, Proteins() + "--max-steps 15 --checkpoint " + steps}})
          .front();
  for (const nlohmann::json& resumed :
       trainings_.Train({{2, two_epochs + " --resume " + epoch},
                         {2, two_epochs + " --resume " + steps}})) {
    EXPECT_LT(resumed["steps"], whole["steps"]);
    EXPECT_EQ(resumed["parameter_digests"], whole["parameter_digests"])
        << resumed["steps"];
    EXPECT_EQ(resumed["evaluation"], whole["evaluation"]) << resumed["steps"];
  }
}

TEST_F(TrainTransformerTest, CheckpointOfAnotherModelIsRefused) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  trainings_.Train(
      {{1, Proteins() + "--max-steps 1 --checkpoint " + checkpoint}});
  const std::string resume = Proteins() + "--resume " + checkpoint;
  for (const Finished& training :
       RunCommands({Command({1, resume + " --heads 4 --d-k 8"}),
                    Command({1, resume + " --d-inner 32"})})) {
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
  const std::vector<nlohmann::json> reports =
      trainings_.Train({{1, flags}, {2, flags}});
  const nlohmann::json& alone = reports[0];
  const nlohmann::json& together = reports[1];
  EXPECT_LT(alone["loss"]["last"], 0.8 * alone["loss"]["first"].get<double>());
  EXPECT_NEAR(together["loss"]["first"], alone["loss"]["first"], 1e-4);
  EXPECT_EQ(together["parameters_identical"], true);
}

TEST_F(TrainTransformerTest, LearnsInBfloat16) {
  const std::string text =
      "--task lm --context 32 --text " + (*data_ / "text").string();
  const std::string flags = " --bf16 --epochs 3";
  for (const nlohmann::json& report :
       trainings_.Train({{2, Proteins() + flags}, {2, text + flags}})) {
    EXPECT_LT(report["loss"]["last"], report["loss"]["first"])
        << report["settings"];
    EXPECT_EQ(report["parameters_identical"], true) << report["settings"];
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
  const std::vector<std::pair<std::string, std::string>> complaints = {
      {"", "--data-dir"},
      {"--task lm", "--text"},
      {"--task lm --text x --heads 5", "--heads 5"},
      {Proteins() + "--deal turns", "--deal"},
      {"--data-dir /nonexistent/proteins", "/nonexistent/proteins"},
      {Proteins() + "--global-batch-size 1", "--global-batch-size 1"}};
  std::vector<std::string> commands;
  for (const auto& [flags, complaint] : complaints) {
    commands.push_back(Command({2, flags}));
  }
  const std::vector<Finished> trainings = RunCommands(commands);
  for (size_t i = 0; i < complaints.size(); ++i) {
    EXPECT_EQ(trainings[i].exit_code, 2) << trainings[i].output;
    EXPECT_EQ(CountOccurrences(trainings[i].output, complaints[i].second), 1)
        << trainings[i].output;
  }
}

}  // namespace
}  // namespace hvdlite::trainers
