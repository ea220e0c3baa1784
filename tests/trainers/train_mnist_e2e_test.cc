// Runs train_mnist as a user does, on one and two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/testing/run_command.h"
#include "tools/support/input_error.h"

namespace hvdlite::trainers {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const std::string kTrain = HVDLITE_TEST_BIN_DIR "/train_mnist";
const std::string kGenerate = HVDLITE_TEST_BIN_DIR "/generate_mnist";

class TrainMnistTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new TemporaryDirectory();
    const Finished generated =
        RunCommand(kGenerate + " --output " + data_->path().string() +
                   " --train-images 640 --test-images 200");
    ASSERT_EQ(generated.exit_code, 0) << generated.output;
  }
  static void TearDownTestSuite() { delete data_; }

  Finished Run(int ranks, const std::string& flags) {
    return RunCommand(kMpirun + " " + std::to_string(ranks) + " " + kTrain +
                      " --global-batch-size 32 --data-dir " +
                      data_->path().string() + " " + flags);
  }

  // Trains quietly with a report and returns that.
  nlohmann::json Train(int ranks, const std::string& flags) {
    const std::string report = scratch_ / "report.json";
    const Finished training =
        Run(ranks, "--quiet --overwrite --report " + report + " " + flags);
    EXPECT_EQ(training.exit_code, 0) << training.output;
    EXPECT_EQ(training.output, "");
    return ReadReport(report);
  }

  static TemporaryDirectory* data_;
  const TemporaryDirectory scratch_;
};

TemporaryDirectory* TrainMnistTest::data_ = nullptr;

TEST_F(TrainMnistTest, CheckedDataIsNotTrainedOn) {
  const Finished check = Run(2, "--check-data");
  EXPECT_EQ(check.exit_code, 0) << check.output;
  EXPECT_THAT(check.output,
              HasSubstr("data: MNIST; 640 training and 200 test images\n"
                        "all 840 images can be read\n"));
  EXPECT_THAT(check.output, Not(HasSubstr("Epoch")));
}

TEST_F(TrainMnistTest, LearnsOnOneAndTwoRanks) {
  for (const int ranks : {1, 2}) {
    const nlohmann::json report =
        Train(ranks, "--epochs 4 --lr 0.05 --momentum 0.9 --dropout 0.2");
    EXPECT_EQ(report["world_size"], ranks);
    EXPECT_EQ(report["steps"], 80);
    EXPECT_LT(report["loss"]["last"],
              0.5 * report["loss"]["first"].get<double>());
    EXPECT_GT(report["evaluation"]["accuracy"], 0.5);  // chance: 0.1
    EXPECT_EQ(report["parameters_identical"], true);
  }
}

// With dropout, which is that of the images.
TEST_F(TrainMnistTest, RanksComputeWhatOneProcessWould) {
  const std::string flags = "--epochs 1 ";
  const nlohmann::json alone = Train(1, flags);
  EXPECT_NE(alone["loss"]["last"],
            Train(1, flags + "--dropout 0.4")["loss"]["last"]);
  for (const int ranks : {2, 3}) {
    for (const char* way : {"", "--manual"}) {
      const nlohmann::json together = Train(ranks, flags + way);
      EXPECT_NEAR(together["loss"]["last"], alone["loss"]["last"], 1e-5)
          << ranks << way;
      EXPECT_NEAR(together["evaluation"]["loss"], alone["evaluation"]["loss"],
                  1e-5)
          << ranks << way;
    }
  }
}

TEST_F(TrainMnistTest, SummedGradientsAreThoseOfARateTimesTheRanks) {
  const std::string flags = "--max-steps 10 ";
  for (const char* way : {"", "--manual"}) {
    EXPECT_NEAR(
        Train(2, flags + "--sum-gradients " + way)["evaluation"]["loss"],
        Train(2, flags + "--lr 0.02")["evaluation"]["loss"], 1e-5);
  }
  EXPECT_EQ(Train(1, flags + "--sum-gradients")["parameter_digests"],
            Train(1, flags)["parameter_digests"]);
}

TEST_F(TrainMnistTest, BareCallsGiveTheSameParametersAsTheOptimizer) {
  const std::string flags = "--max-steps 5 ";
  EXPECT_EQ(Train(2, flags + "--manual")["parameter_digests"],
            Train(2, flags)["parameter_digests"]);
}

TEST_F(TrainMnistTest, ResumedRunEqualsAnUninterruptedOne) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  const nlohmann::json whole = Train(2, "--epochs 2");
  for (const char* first_part : {"--epochs 1", "--max-steps 27"}) {
    Train(2, std::string(first_part) + " --checkpoint " + checkpoint);
    const nlohmann::json resumed =
        Train(2, "--epochs 2 --resume " + checkpoint);
    EXPECT_LT(resumed["steps"], whole["steps"]);
    EXPECT_EQ(resumed["parameter_digests"], whole["parameter_digests"])
        << first_part;
    EXPECT_EQ(resumed["evaluation"], whole["evaluation"]) << first_part;
  }
}

TEST_F(TrainMnistTest, JobStartedAgainWithOtherRanksTakesEachImageOnce) {
  const std::string flags = "--epochs 2 ";
  const nlohmann::json whole = Train(1, flags);
  for (const int ranks : {1, 3}) {
    const std::string checkpoint =
        scratch_ / ("checkpoint" + std::to_string(ranks) + ".pt");
    Train(2, flags + "--max-steps 27 --checkpoint " + checkpoint);
    const std::string report = scratch_ / "restarted.json";
    // As hvdliterun starts it: the same flags as before.
    const Finished restarted = RunCommand(
        "HVDLITE_RESTARTS=1 " + kMpirun + " " + std::to_string(ranks) + " " +
        kTrain + " --global-batch-size 32 --data-dir " +
        data_->path().string() + " " + flags + "--checkpoint " + checkpoint +
        " --report " + report);
    ASSERT_EQ(restarted.exit_code, 0) << restarted.output;
    EXPECT_THAT(restarted.output,
                HasSubstr("resumed: 27 of 40 steps are done\n"));
    const nlohmann::json rest = ReadReport(report);
    EXPECT_EQ(rest["steps"], 13);
    EXPECT_NEAR(rest["evaluation"]["loss"], whole["evaluation"]["loss"], 1e-5);
  }
}

TEST_F(TrainMnistTest, ResumesAutomaticallyFromTheNewestCheckpointThatIsWhole) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  const std::string report = scratch_ / "resumed.json";
  const std::string flags =
      " --resume auto --checkpoint-every-steps 3 --checkpoint " + checkpoint;
  const nlohmann::json whole = Train(2, "--epochs 2");
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
              testing::ContainsRegex("resumed: (3|6|9|12|15|18|21|24) of 40 "
                                     "steps are done\n"));
  EXPECT_EQ(ReadReport(report)["parameter_digests"],
            whole["parameter_digests"]);
}

TEST_F(TrainMnistTest, ResumingWhatIsDoneTellsSoAndRanksStayEqual) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  const std::string report = scratch_ / "report.json";
  Train(2, "--max-steps 2 --checkpoint " + checkpoint);
  const Finished training = Run(2, "--max-steps 2 --overwrite --resume " +
                                       checkpoint + " --report " + report);
  EXPECT_EQ(training.exit_code, 0) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "2 of 2 steps are done"), 1);
  EXPECT_EQ(ReadReport(report)["parameters_identical"], true);
}

TEST_F(TrainMnistTest, FilesOfAnEarlierRunAreRefusedBeforeTheTraining) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  const std::string report = scratch_ / "report.json";
  Train(2, "--max-steps 2 --checkpoint " + checkpoint);
  std::filesystem::rename(checkpoint, checkpoint + ".previous");
  const std::string before = FileBytes(checkpoint + ".previous");
  for (const auto& [flags, message] :
       {std::pair("--checkpoint " + checkpoint, "--resume auto continues"),
        std::pair("--report " + report, "--overwrite replaces it"),
        std::pair("--overwrite --resume " + checkpoint + ".previous --report " +
                      checkpoint + ".previous",
                  "this command reads")}) {
    const Finished training = Run(2, "--max-steps 2 " + flags);
    EXPECT_EQ(training.exit_code, support::kInputErrorExitCode) << flags;
    EXPECT_EQ(CountOccurrences(training.output, message), 1) << training.output;
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
  Train(1, "--max-steps 3 --checkpoint " + checkpoint);
  const Finished training = Run(1, "--max-steps 5 --resume " + checkpoint);
  EXPECT_EQ(training.exit_code, 0) << training.output;
  EXPECT_THAT(training.output, HasSubstr("resumed: 3 of 5 steps are done\n"));
}

TEST_F(TrainMnistTest, DivergenceIsAnErrorPrintedOnceAndSpoilsNoCheckpoint) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  Train(2, "--max-steps 2 --checkpoint " + checkpoint);
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
  const std::string report = scratch_ / "report.json";
  for (const std::string flags : {"", "--threads 2"}) {
    const Finished training =
        RunCommand("env -u OMP_NUM_THREADS HVDLITE_LOG_LEVEL=info " + kTrain +
                   " --max-steps 1 --overwrite --report " + report +
                   " --data-dir " + data_->path().string() + " " + flags);
    ASSERT_EQ(training.exit_code, 0) << training.output;
    const int threads = ReadReport(report)["threads_per_rank"];
    EXPECT_THAT(training.output,
                HasSubstr(", " + std::to_string(threads) + " thread" +
                          (threads == 1 ? ", " : "s, ")));
  }
}

TEST_F(TrainMnistTest, TheReportCountsTheCpusOfAMachineOnce) {
  ::setenv("HVDLITE_VIRTUAL_NODES", "1", 1);
  const nlohmann::json report = Train(2, "--max-steps 2");
  ::unsetenv("HVDLITE_VIRTUAL_NODES");
  EXPECT_THAT(report["machine"]["other programs"],
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
  for (const std::string setting :
       {"HVDLITE_VIRTUAL_NODES=2,2", "HVDLITE_VIRTUAL_NODES=two",
        "HVDLITE_ALLREDUCE_TABLE=/nonexistent/table"}) {
    const Finished training =
        RunCommand(setting + " " + kMpirun + " 2 " + kTrain + " --data-dir " +
                   data_->path().string());
    EXPECT_EQ(training.exit_code, 2) << training.output;
    EXPECT_THAT(training.output,
                HasSubstr(setting.substr(setting.find('=') + 1)));
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
  for (const int ranks : {1, 2}) {
    const Finished training = Run(ranks, flags);
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
  for (const char* batch : {"33", "1"}) {
    const std::string flags =
        std::string("--max-steps 20 --dropout 0 --global-batch-size ") + batch;
    const nlohmann::json alone = Train(1, flags);
    for (const char* way : {"", " --manual"}) {
      const nlohmann::json together = Train(2, flags + way);
      EXPECT_NEAR(together["loss"]["last"], alone["loss"]["last"], 1e-5)
          << batch << way;
    }
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
