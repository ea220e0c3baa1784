// Runs train_mnist as a user does, on one and two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/input_error.h"
#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/trainings.h"

namespace hvdlite::trainers {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTrain = HVDLITE_TEST_BIN_DIR "/train_mnist";
const std::string kGenerate = HVDLITE_TEST_BIN_DIR "/generate_mnist";

class TrainMnistTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new TemporaryDirectory();
    const Finished generated =
        RunCommand(kGenerate + " --output " + data_->path().string() +
                   " --train-images 640 --test-images 200");
    ASSERT_EQ(generated.exit_code, 0) << generated.output;
  }
  static void TearDownTestSuite() { delete data_; }

  static std::string Command(const Training& training) {
    return kMpirun + " " + std::to_string(training.first) + " " + kTrain +
           " --global-batch-size 32 --data-dir " + data_->path().string() +
           " " + training.second;
  }
  static Finished Run(int ranks, const std::string& flags) {
    return RunCommand(Command({ranks, flags}));
  }
  static nlohmann::json Train(int ranks, const std::string& flags) {
    return trainings_.Train({{ranks, flags}}).front();
  }

  // A copy, in `file`, of the checkpoint of two steps on two ranks.
  static void WriteTwoSteps(const std::string& file) {
    const std::string made = *data_ / "two_steps.pt";
    if (!std::filesystem::exists(made)) {
      const Finished training =
          Run(2, "--quiet --max-steps 2 --checkpoint " + made);
      EXPECT_EQ(training.exit_code, 0) << training.output;
      EXPECT_EQ(training.output, "");
    }
    std::filesystem::copy_file(made, file);
  }

  static TemporaryDirectory* data_;
  static Trainings trainings_;
  const TemporaryDirectory scratch_;
};

TemporaryDirectory* TrainMnistTest::data_ = nullptr;
Trainings TrainMnistTest::trainings_(&TrainMnistTest::Command);

TEST_F(TrainMnistTest, CheckedDataIsNotTrainedOn) {
  const Finished check = Run(2, "--check-data");
  EXPECT_EQ(check.exit_code, 0) << check.output;
  EXPECT_THAT(check.output,
              HasSubstr("data: MNIST; 640 training and 200 test images\n"
                        "all 840 images can be read\n"));
  EXPECT_THAT(check.output, Not(HasSubstr("Epoch")));
}

TEST_F(TrainMnistTest, LearnsOnOneAndTwoRanks) {
  const std::string flags = "--epochs 4 --lr 0.05 --momentum 0.9 --dropout 0.2";
  int ranks = 0;
  for (const nlohmann::json& report :
       trainings_.Train({{1, flags}, {2, flags}})) {
    EXPECT_EQ(report["world_size"], ++ranks);
    EXPECT_EQ(report["steps"], 80);
    EXPECT_LT(report["loss"]["last"],
              0.5 * report["loss"]["first"].get<double>());
    EXPECT_GT(report["evaluation"]["accuracy"], 0.5);  // chance: 0.1
    EXPECT_EQ(report["parameters_identical"], true);
  }
}

// With dropout, which is that of the images.
TEST_F(TrainMnistTest, RanksComputeWhatOneProcessWould) {
  const std::string flags = "--epochs 1";
  const std::string manual = flags + " --manual";
  const std::vector<nlohmann::json> reports =
      trainings_.Trained({{1, flags},
                          {1, flags + " --dropout 0.4"},
                          {2, flags},
                          {2, manual},
                          {3, flags},
                          {3, manual}});
  const nlohmann::json& alone = reports[0];
  EXPECT_NE(alone["loss"]["last"], reports[1]["loss"]["last"]);
  for (size_t i = 2; i < reports.size(); ++i) {
    EXPECT_NEAR(reports[i]["loss"]["last"], alone["loss"]["last"], 1e-5) << i;
    EXPECT_NEAR(reports[i]["evaluation"]["loss"], alone["evaluation"]["loss"],
                1e-5)
        << i;
  }
}

TEST_F(TrainMnistTest, SummedGradientsAreThoseOfARateTimesTheRanks) {
  const std::string flags = "--max-steps 10";
  const std::string sum = flags + " --sum-gradients";
  const std::vector<nlohmann::json> reports =
      trainings_.Train({{2, flags + " --lr 0.02"},
                        {2, sum},
                        {2, sum + " --manual"},
                        {1, flags},
                        {1, sum}});
  const double loss = reports[0]["evaluation"]["loss"];
  EXPECT_NEAR(reports[1]["evaluation"]["loss"], loss, 1e-5);
  EXPECT_NEAR(reports[2]["evaluation"]["loss"], loss, 1e-5);
  EXPECT_EQ(reports[4]["parameter_digests"], reports[3]["parameter_digests"]);
}

TEST_F(TrainMnistTest, BareCallsGiveTheSameParametersAsTheOptimizer) {
  const std::vector<nlohmann::json> reports =
      trainings_.Trained({{2, "--epochs 1"}, {2, "--epochs 1 --manual"}});
  EXPECT_EQ(reports[0]["parameter_digests"], reports[1]["parameter_digests"]);
}

TEST_F(TrainMnistTest, ResumedRunEqualsAnUninterruptedOne) {
  const std::vector<std::string> parts = {"--epochs 1", "--max-steps 27"};
  std::vector<Training> first = {{2, "--epochs 2"}};
  std::vector<Training> rest;
  for (const std::string& part : parts) {
    const std::string checkpoint = scratch_ / part.substr(2, 3);
    first.emplace_back(2, part + " --checkpoint " + checkpoint);
    rest.emplace_back(2, "--epochs 2 --resume " + checkpoint);
  }
  const nlohmann::json whole = trainings_.Trained(first).front();
  const std::vector<nlohmann::json> resumed = trainings_.Train(rest);
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_LT(resumed[i]["steps"], whole["steps"]);
    EXPECT_EQ(resumed[i]["parameter_digests"], whole["parameter_digests"])
        << parts[i];
    EXPECT_EQ(resumed[i]["evaluation"], whole["evaluation"]) << parts[i];
  }
}

TEST_F(TrainMnistTest, JobStartedAgainWithOtherRanksTakesEachImageOnce) {
  const std::string flags = "--epochs 2";
  const std::string checkpoint = scratch_ / "checkpoint";
  const nlohmann::json whole =
      trainings_
          .Trained({{1, flags},
                    {2, flags + " --max-steps 27 --checkpoint " + checkpoint}})
          .front();
  // As hvdliterun starts it: the same flags as before.
  const auto restart = [&](const std::string& ranks) {
    std::filesystem::copy_file(checkpoint, checkpoint + ranks);
    return "HVDLITE_RESTARTS=1 " +
           Command({std::stoi(ranks), flags + " --checkpoint " + checkpoint +
                                          ranks + " --report " + checkpoint +
                                          ranks + ".json"});
  };
  const std::vector<Finished> runs = RunCommands({restart("1"), restart("3")});
  for (const Finished& restarted : runs) {
    ASSERT_EQ(restarted.exit_code, 0) << restarted.output;
    EXPECT_THAT(restarted.output,
                HasSubstr("resumed: 27 of 40 steps are done\n"));
  }
  for (const char* ranks : {"1", "3"}) {
    const nlohmann::json rest = ReadReport(checkpoint + ranks + ".json");
    EXPECT_EQ(rest["world_size"], std::stoi(ranks));
    EXPECT_EQ(rest["steps"], 13);
    EXPECT_NEAR(rest["evaluation"]["loss"], whole["evaluation"]["loss"], 1e-5);
  }
}

TEST_F(TrainMnistTest, ResumesAutomaticallyFromTheNewestCheckpointThatIsWhole) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  const std::string report = scratch_ / "resumed.json";
  const std::string flags =
      " --resume auto --checkpoint-every-steps 3 --checkpoint " + checkpoint;
  const nlohmann::json whole = trainings_.Trained({{2, "--epochs 2"}}).front();
  // Of 20 steps an epoch: the last checkpoints are of steps 24 and 26.
  EXPECT_EQ(Train(2, "--max-steps 26" + flags)["steps"], 26);
  std::string damaged = FileBytes(checkpoint);
  damaged[damaged.size() / 2] ^= 4;
  WriteFileBytes(checkpoint, damaged);
  const Finished resumed = Run(2, "--epochs 2 --report " + report + flags);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(CountOccurrences(resumed.output, "taking the one before"), 1);
  // That of step 24, unless it was left out since one before was still being
  // written.
  EXPECT_THAT(resumed.output,
              ::testing::ContainsRegex("resumed: (3|6|9|12|15|18|21|24) of 40 "
                                       "steps are done\n"));
  EXPECT_EQ(ReadReport(report)["parameter_digests"],
            whole["parameter_digests"]);
}

TEST_F(TrainMnistTest, ResumingWhatIsDoneTellsSoAndRanksStayEqual) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  const std::string report = scratch_ / "report.json";
  WriteTwoSteps(checkpoint);
  const Finished training =
      Run(2, "--max-steps 2 --resume " + checkpoint + " --report " + report);
  EXPECT_EQ(training.exit_code, 0) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "2 of 2 steps are done"), 1);
  EXPECT_EQ(ReadReport(report)["parameters_identical"], true);
}

TEST_F(TrainMnistTest, FilesOfAnEarlierRunAreRefusedBeforeTheTraining) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  const std::string report = scratch_ / "report.json";
  WriteTwoSteps(checkpoint + ".previous");
  WriteFileBytes(report, "{}");
  const std::string before = FileBytes(checkpoint + ".previous");
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"--checkpoint " + checkpoint, "--resume auto continues"},
      {"--report " + report, "--overwrite replaces it"},
      {"--overwrite --resume " + checkpoint + ".previous --report " +
           checkpoint + ".previous",
       "this command reads"}};
  std::vector<std::string> commands;
  for (const auto& [flags, message] : refused) {
    commands.push_back(Command({2, "--max-steps 2 " + flags}));
  }
  const std::vector<Finished> trainings = RunCommands(commands);
  for (size_t i = 0; i < refused.size(); ++i) {
    EXPECT_EQ(trainings[i].exit_code, support::kInputErrorExitCode)
        << refused[i].first;
    EXPECT_EQ(CountOccurrences(trainings[i].output, refused[i].second), 1)
        << trainings[i].output;
  }
  EXPECT_EQ(FileBytes(checkpoint + ".previous"), before);
  const Finished resumed =
      Run(2, "--max-steps 3 --resume auto --checkpoint " + checkpoint);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("resumed: 2 of 3 steps are done\n"));
  // The training that begins anew has nothing of the earlier one beside it.
  const Finished anew =
      Run(2, "--max-steps 1 --overwrite --checkpoint " + checkpoint);
  EXPECT_EQ(anew.exit_code, 0) << anew.output;
  EXPECT_THAT(anew.output, Not(HasSubstr("resumed")));
  EXPECT_FALSE(std::filesystem::exists(checkpoint + ".previous"));
}

TEST_F(TrainMnistTest, ResumedRunTellsWhereItGoesOn) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  WriteTwoSteps(checkpoint);
  const Finished training = Run(1, "--max-steps 4 --resume " + checkpoint);
  EXPECT_EQ(training.exit_code, 0) << training.output;
  EXPECT_THAT(training.output, HasSubstr("resumed: 2 of 4 steps are done\n"));
}

TEST_F(TrainMnistTest, DivergenceIsAnErrorPrintedOnceAndSpoilsNoCheckpoint) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  WriteTwoSteps(checkpoint);
  const std::string before = FileBytes(checkpoint);
  const Finished training =
      Run(2,
          "--lr 1e30 --max-steps 6 --checkpoint-every-steps 2 --resume auto "
          "--checkpoint " +
              checkpoint);
  EXPECT_EQ(training.exit_code, 1) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "is not finite"), 1)
      << training.output;
  EXPECT_EQ(CountOccurrences(
                training.output,
                "hvdlite warning] no checkpoint after 4 steps: the parameter"),
            1)
      << training.output;
  EXPECT_EQ(FileBytes(checkpoint), before);
}

TEST_F(TrainMnistTest, TheThreadsThatTheStartTellsOfAreThoseOfTheTraining) {
  std::vector<std::string> commands;
  for (const std::string number : {"0", "1"}) {
    commands.push_back("env -u OMP_NUM_THREADS HVDLITE_LOG_LEVEL=info " +
                       kTrain + " --max-steps 1 --report " +
                       (scratch_ / number).string() + " --data-dir " +
                       data_->path().string());
  }
  commands.back() += " --threads 2";
  int number = 0;
  for (const Finished& training : RunCommands(commands)) {
    ASSERT_EQ(training.exit_code, 0) << training.output;
    const int threads =
        ReadReport(scratch_ / std::to_string(number++))["threads_per_rank"];
    EXPECT_THAT(training.output,
                HasSubstr(", " + std::to_string(threads) + " thread" +
                          (threads == 1 ? ", " : "s, ")));
  }
}

TEST_F(TrainMnistTest, TheReportCountsTheCpusOfAMachineOnce) {
  const std::string report = scratch_ / "report.json";
  const Finished training =
      RunCommand("HVDLITE_VIRTUAL_NODES=1 " +
                 Command({2, "--max-steps 2 --report " + report}));
  ASSERT_EQ(training.exit_code, 0) << training.output;
  EXPECT_THAT(
      ReadReport(report)["machine"]["other programs"].get<std::string>(),
      HasSubstr(" of " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) +
                " CPUs"));
}

TEST_F(TrainMnistTest, AReportThatCannotBeWrittenCostsNothingElse) {
  const std::string report = scratch_ / "report.json";
  const Finished training =
      RunCommand("ulimit -f 0; HVDLITE_BACKEND=single " + kTrain +
                 " --epochs 1 --report " + report + " --data-dir " +
                 data_->path().string());
  EXPECT_EQ(training.exit_code, 74) << training.output;
  EXPECT_THAT(training.output,
              AllOf(HasSubstr("accuracy"), HasSubstr("File too large")));
  EXPECT_FALSE(std::filesystem::exists(report));
}

TEST_F(TrainMnistTest, SettingsThatOnlyTheWorldFindsBadAreBadInput) {
  const std::vector<std::pair<std::string, std::string>> settings = {
      {"HVDLITE_VIRTUAL_NODES", "2,2"},
      {"HVDLITE_VIRTUAL_NODES", "two"},
      {"HVDLITE_ALLREDUCE_TABLE", "/nonexistent/table"}};
  std::vector<std::string> commands;
  for (const auto& [name, value] : settings) {
    commands.push_back(name + "=" + value + " " + Command({2, ""}));
  }
  const std::vector<Finished> trainings = RunCommands(commands);
  for (size_t i = 0; i < settings.size(); ++i) {
    EXPECT_EQ(trainings[i].exit_code, 2) << trainings[i].output;
    EXPECT_THAT(trainings[i].output, HasSubstr(settings[i].second));
  }
}

TEST_F(TrainMnistTest, MistypedFlagIsNamedThoughItIsRequired) {
  const Finished training = RunCommand(kTrain + " --data-dri x");
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_THAT(training.output, HasSubstr("did you mean --data-dir?"));
}

TEST_F(TrainMnistTest, RanksWithDifferentDataAreRefused) {
  const TemporaryDirectory other;
  ASSERT_EQ(RunCommand(kGenerate + " --output " + other.path().string() +
                       " --train-images 320 --test-images 200")
                .exit_code,
            0);
  const Finished training =
      RunCommand(OnTwoRanks(kTrain + " --data-dir " + data_->path().string(),
                            kTrain + " --data-dir " + other.path().string()));
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_THAT(training.output, HasSubstr("different numbers of images"));
}

TEST_F(TrainMnistTest, RankZeroPrintsTheLossOfAllRanks) {
  const std::string flags = "--epochs 2 --max-steps 25";
  std::string losses;
  int ranks = 0;
  for (const Finished& training :
       RunCommands({Command({1, flags}), Command({2, flags})})) {
    ++ranks;
    ASSERT_EQ(training.exit_code, 0) << training.output;
    const std::string line =
        "Epoch 1 Loss [0-9]+\\.[0-9]{6} Global batch size "
        "32 on " +
        std::to_string(ranks) + " ranks\n";
    EXPECT_THAT(training.output, ContainsRegex("\n" + line));
    EXPECT_EQ(CountOccurrences(training.output, "Epoch 1"), 1);
    EXPECT_EQ(CountOccurrences(training.output, "Test loss"), 2);
    // Equal but for the last digits.
    const std::string loss =
        training.output.substr(training.output.find("Epoch 1"), 17);
    if (ranks == 1) losses = loss;
    EXPECT_EQ(loss, losses);
  }
}

TEST_F(TrainMnistTest, EveryRankPrintsItsOwnLossWhenAskedTo) {
  const Finished training = Run(2, "--debug-print --epochs 2 --max-steps 25");
  ASSERT_EQ(training.exit_code, 0) << training.output;
  for (const char* line :
       {"\\[0/2\\] Epoch 0 Loss [0-9.]+ Global batch size 32 on 2 ranks\n",
        "\\[1/2\\] Epoch 0 Loss [0-9.]+ Global batch size 32 on 2 ranks\n",
        "\\[1/2\\] Epoch 1 Loss [0-9.]+ Global batch size 32 on 2 ranks\n",
        "\\[0/2\\] Test loss [0-9.]+ accuracy 0\\.[0-9]{4}\n"}) {
    EXPECT_THAT(training.output, ContainsRegex(line));
  }
  EXPECT_EQ(CountOccurrences(training.output, "accuracy"), 2);
}

TEST_F(TrainMnistTest, BatchIsSharedAsEquallyAsItCanBe) {
  std::vector<Training> trainings;
  for (const char* batch : {"33", "1"}) {
    const std::string flags =
        std::string("--max-steps 20 --dropout 0 --global-batch-size ") + batch;
    trainings.insert(trainings.end(),
                     {{1, flags}, {2, flags}, {2, flags + " --manual"}});
  }
  const std::vector<nlohmann::json> reports = trainings_.Train(trainings);
  for (size_t i = 0; i < reports.size(); ++i) {
    EXPECT_NEAR(reports[i]["loss"]["last"], reports[i / 3 * 3]["loss"]["last"],
                1e-5)
        << trainings[i].second;
  }
}

TEST_F(TrainMnistTest, MissingDataIsAnErrorPrintedOnce) {
  const Finished training = Run(2, "--data-dir /nonexistent/mnist");
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "train_mnist:"), 1)
      << training.output;
  EXPECT_THAT(training.output, HasSubstr("/nonexistent/mnist"));
}

}  // namespace
}  // namespace hvdlite::trainers
