// Runs the programs as a user does, on two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/testing/fakes/temporary_directory.h"
#include "tests/testing/run_command.h"
#include "tests/trainers/trainings.h"

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTrain = HVDLITE_TEST_BIN_DIR "/train_resnet50";
const std::string kGenerate = HVDLITE_TEST_BIN_DIR "/generate_cifar10";
const std::string kViewer = HVDLITE_TEST_BIN_DIR "/timeline_viewer";

std::string OnRanks(int ranks, const std::string& flags) {
  return kMpirun + " " + std::to_string(ranks) + " " + kTrain + " " + flags;
}

Finished TrainOnTwoRanks(const std::string& flags,
                         const std::string& environment = "") {
  return RunCommand(environment + " " + OnRanks(2, flags));
}

// Generated files, made once; 20 steps of an epoch for two ranks.
class TrainResnet50Test : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new TemporaryDirectory();
    const Finished generated =
        RunCommand(kGenerate + " --output " + data_->path().string() +
                   " --train-images 640 --test-images 201");
    ASSERT_EQ(generated.exit_code, 0) << generated.output;
  }
  static void TearDownTestSuite() { delete data_; }

  // Flags of a small training on the generated files.
  static std::string SmallTraining() {
    return "--arch resnet8 --batch-size 16 --lr 0.025 --warmup-epochs 1 "
           "--data-dir " +
           data_->path().string() + " ";
  }

  // What is to end before it trains: the trace of an earlier run stays.
  Finished EndBeforeTraining(const std::string& flags) const {
    const std::string trace = scratch_ / "trace.json";
    std::ofstream(trace) << "earlier";
    const Finished run = TrainOnTwoRanks(flags, "HVDLITE_TIMELINE=" + trace);
    std::ostringstream left;
    left << std::ifstream(trace).rdbuf();
    EXPECT_TRUE(left.str() == "earlier") << flags;
    return run;
  }

  // Small trainings on two ranks, at the same time.
  static std::vector<nlohmann::json> Train(
      const std::vector<std::string>& flags_of_trainings) {
    Trainings trainings([](const Training& training) {
      return OnRanks(training.first, SmallTraining() + training.second);
    });
    std::vector<Training> on_two_ranks;
    for (const std::string& flags : flags_of_trainings) {
      on_two_ranks.emplace_back(2, flags);
    }
    return trainings.Train(on_two_ranks);
  }

  static TemporaryDirectory* data_;
  const TemporaryDirectory scratch_;
};

TemporaryDirectory* TrainResnet50Test::data_ = nullptr;

TEST_F(TrainResnet50Test, LearnsAndAllRanksEndWithTheSameParameters) {
  const nlohmann::json report = Train({"--epochs 3 --log-interval 5"}).front();
  EXPECT_EQ(report["world_size"], 2);
  EXPECT_EQ(report["steps"], 60);
  EXPECT_EQ(report["loss"]["intervals"].size(), 12U);
  EXPECT_GT(report["loss"]["first"], 1.5);
  EXPECT_LT(report["loss"]["last"], 0.7);
  EXPECT_EQ(report["evaluation"]["images"], 201);
  EXPECT_GT(report["evaluation"]["accuracy"], 0.5);  // chance: 0.1
  ASSERT_EQ(report["parameter_digests"].size(), 2U);
  EXPECT_EQ(report["parameter_digests"][0], report["parameter_digests"][1]);
  EXPECT_EQ(report["parameters_identical"], true);
}

TEST_F(TrainResnet50Test, WithoutSynchronisationRanksEndWithOtherParameters) {
  for (const nlohmann::json& report :
       Train({"--no-sync --max-steps 3", "--barrier-only --max-steps 3"})) {
    EXPECT_EQ(report["parameters_identical"], false) << report["settings"];
  }
}

TEST_F(TrainResnet50Test, ChannelsLastRanksEndWithTheSameParameters) {
  const nlohmann::json report =
      Train({"--memory-format nhwc --max-steps 3"}).front();
  EXPECT_EQ(report["parameters_identical"], true);
}

TEST_F(TrainResnet50Test, ResumedRunEqualsAnUninterruptedOne) {
  const std::string epoch = scratch_ / "epoch.pt";
  const std::string steps = scratch_ / "steps.pt";
  const std::string flags = "--lr-steps 1.2 ";
  const nlohmann::json whole =
      Train({flags + "--epochs 2", flags + "--epochs 1 --checkpoint " + epoch,
             flags + "--max-steps 27 --checkpoint " + steps})
          .front();
  const std::vector<nlohmann::json> resumed =
      Train({flags + "--epochs 2 --resume " + epoch,
             flags + "--epochs 2 --resume " + steps});
  for (const nlohmann::json& report : resumed) {
    EXPECT_LT(report["steps"], whole["steps"]);
    EXPECT_EQ(report["parameter_digests"], whole["parameter_digests"])
        << report["steps"];
  }
  EXPECT_EQ(resumed[0]["evaluation"], whole["evaluation"]);
  // Steps are those of the run.
  EXPECT_THAT(whole["output"].get<std::string>(),
              HasSubstr("epoch 2/2 step 40/40 "));

  const Finished over =
      EndBeforeTraining(SmallTraining() + "--epochs 1 --resume " + epoch);
  EXPECT_EQ(over.exit_code, 0) << over.output;
  EXPECT_THAT(over.output, HasSubstr("nothing to do: 20 of 20 steps"));
  EXPECT_THAT(over.output, Not(HasSubstr("images/s"))) << over.output;
}

TEST_F(TrainResnet50Test, AGlobalBatchIsDealtToWhateverRanksAJobGoesOnWith) {
  const std::string report = scratch_ / "report.json";
  const std::string flags = " " + kTrain +
                            " --arch resnet8 --global-batch-size 32 "
                            "--data-dir " +
                            data_->path().string() + " --checkpoint " +
                            (scratch_ / "checkpoint.pt").string();
  ASSERT_EQ(RunCommand(kMpirun + " 2" + flags + " --max-steps 8").exit_code, 0);
  const Finished restarted = RunCommand("HVDLITE_RESTARTS=1 " + kMpirun + " 3" +
                                        flags + " --report " + report);
  ASSERT_EQ(restarted.exit_code, 0) << restarted.output;
  EXPECT_THAT(restarted.output, HasSubstr("resumed: 8 of 20 steps are done\n"));
  EXPECT_EQ(ReadReport(report)["steps"], 12);
  EXPECT_EQ(ReadReport(report)["parameters_identical"], true);
}

TEST_F(TrainResnet50Test, AGlobalBatchHasAnImageForEachRankAtLeast) {
  const Finished training = TrainOnTwoRanks(
      "--synthetic --arch resnet8 "
      "--global-batch-size 1");
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_THAT(training.output,
              HasSubstr("--global-batch-size 1 leaves some of 2 ranks"));
}

TEST_F(TrainResnet50Test, TimelineHoldsEveryPhaseOnBothRanks) {
  const std::string trace = scratch_ / "trace.json";
  const Finished training = TrainOnTwoRanks(SmallTraining() + "--max-steps 3",
                                            "HVDLITE_TIMELINE=" + trace);
  ASSERT_EQ(training.exit_code, 0) << training.output;
  const Finished viewer = RunCommand(kViewer + " --by-rank " + trace);
  ASSERT_EQ(viewer.exit_code, 0) << viewer.output;
  for (const char* name :
       {"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "MEMCPY_IN_FUSION_BUFFER",
        "MPI_ALLREDUCE", "MEMCPY_OUT_FUSION_BUFFER", "FORWARD", "BACKWARD"}) {
    // A line in the table of all, and in that of either rank.
    EXPECT_EQ(CountOccurrences(viewer.output, "\n" + std::string(name) + " "),
              3)
        << name << " in\n"
        << viewer.output;
  }
}

TEST_F(TrainResnet50Test, RanksThatOnlyMeetDoSoInEveryStep) {
  const std::string trace = scratch_ / "trace.json";
  const Finished training =
      TrainOnTwoRanks(SmallTraining() + "--barrier-only --max-steps 3",
                      "HVDLITE_TIMELINE=" + trace);
  ASSERT_EQ(training.exit_code, 0) << training.output;
  std::ostringstream events;
  events << std::ifstream(trace).rdbuf();
  // Ranks meet to start the timeline, too.
  EXPECT_EQ(CountOccurrences(events.str(), "\"name\":\"BARRIER\""),
            (1 + 3) * 2);
}

TEST_F(TrainResnet50Test, RunsAsOneProcessWithoutMpirun) {
  const std::string report = scratch_ / "report.json";
  const Finished training =
      RunCommand("OMP_NUM_THREADS=1 " + kTrain + " " + SmallTraining() +
                 "--max-steps 3 --report " + report);
  ASSERT_EQ(training.exit_code, 0) << training.output;
  EXPECT_EQ(ReadReport(report)["world_size"], 1);
}

TEST_F(TrainResnet50Test, HelpIsPrintedOnce) {
  const Finished help = EndBeforeTraining("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(CountOccurrences(help.output, "--memory-format"), 1);
}

TEST_F(TrainResnet50Test, UnknownFlagIsAnErrorPrintedOnce) {
  const Finished training =
      EndBeforeTraining(SmallTraining() + "--batchsize 3");
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "--batchsize"), 1)
      << training.output;
}

TEST_F(TrainResnet50Test, MissingDataIsAnErrorPrintedOnce) {
  const Finished training =
      EndBeforeTraining("--data-dir /nonexistent/cifar10");
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "/nonexistent/cifar10"), 1)
      << training.output;
  EXPECT_THAT(training.output, HasSubstr("all 2 ranks"));
}

TEST_F(TrainResnet50Test, DivergenceIsAnErrorPrintedOnce) {
  const Finished training = TrainOnTwoRanks(
      SmallTraining() + "--lr 1e30 --warmup-epochs 0 --log-interval 1");
  EXPECT_EQ(training.exit_code, 1) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "is not finite"), 1)
      << training.output;
}

TEST_F(TrainResnet50Test, FlagsOfFoldersAreRefusedWithCifar10) {
  const std::vector<std::string> refused = {
      "--image-size 64", "--train-domains photo", "--val-domains photo",
      "--augmentation imagenet", "--skip-unreadable"};
  std::vector<std::string> commands;
  for (const std::string& flags : refused) {
    // One of them by two ranks.
    commands.push_back(commands.empty() ? OnRanks(2, SmallTraining() + flags)
                                        : "HVDLITE_BACKEND=single " + kTrain +
                                              " " + SmallTraining() + flags);
  }
  const std::vector<Finished> trainings = RunCommands(commands);
  for (size_t i = 0; i < refused.size(); ++i) {
    EXPECT_EQ(trainings[i].exit_code, 2) << trainings[i].output;
    EXPECT_THAT(trainings[i].output,
                HasSubstr(refused[i].substr(0, refused[i].find(' '))));
    EXPECT_THAT(trainings[i].output, HasSubstr("CIFAR-10"));
  }
}

TEST_F(TrainResnet50Test, CheckedDataIsNotTrainedOn) {
  const Finished check = EndBeforeTraining(SmallTraining() + "--check-data");
  EXPECT_EQ(check.exit_code, 0) << check.output;
  EXPECT_EQ(CountOccurrences(check.output, "images can be read"), 1)
      << check.output;
  EXPECT_EQ(CountOccurrences(check.output, "step"), 0) << check.output;
}

TEST_F(TrainResnet50Test, DataMissingOnOneRankEndsAllOfThem) {
  const Finished training = RunCommand(
      OnTwoRanks(kTrain + " " + SmallTraining(),
                 kTrain + " --arch resnet8 --data-dir /nonexistent/cifar10"));
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_THAT(training.output, HasSubstr("on rank 1: cannot read the data "
                                         "directory '/nonexistent/cifar10'"));
}

TEST_F(TrainResnet50Test, MissingCheckpointIsAnErrorPrintedOnce) {
  const Finished training =
      EndBeforeTraining(SmallTraining() + "--resume /nonexistent/c.pt");
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "/nonexistent/c.pt"), 1)
      << training.output;
}

TEST_F(TrainResnet50Test, UnwritableReportIsAnErrorBeforeTraining) {
  const Finished training =
      EndBeforeTraining(SmallTraining() + "--report /nonexistent/report.json");
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_THAT(training.output, HasSubstr("/nonexistent/report.json"));
  EXPECT_EQ(CountOccurrences(training.output, "cannot write"), 1)
      << training.output;
  EXPECT_THAT(training.output, Not(HasSubstr("epoch 1")));
}

TEST_F(TrainResnet50Test, TimelineOfOneRankAloneIsRefused) {
  const std::string train = kTrain + " " + SmallTraining();
  const std::string trace = scratch_ / "trace.json";
  const Finished training = RunCommand(
      OnTwoRanks("env HVDLITE_TIMELINE=" + trace + " " + train, train));
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, trace + "' on rank 0"), 1)
      << training.output;
}

TEST_F(TrainResnet50Test, ReportThatWouldBeTheTraceIsRefused) {
  const Finished training = EndBeforeTraining(
      SmallTraining() + "--report " + (scratch_ / "trace.json").string());
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_THAT(training.output, HasSubstr("which HVDLITE_TIMELINE writes"));
}

}  // namespace
}  // namespace hvdlite::trainers
