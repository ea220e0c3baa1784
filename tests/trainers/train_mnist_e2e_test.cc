// Runs train_mnist as a user does, on one and two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/input_error.h"
#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/trainer_contract.h"

namespace hvdlite::trainers {

const Trainer kTrainer = {
    .program = "train_mnist",
    .generate = "generate_mnist --train-images 630 --test-images 200",
    .flags = "--global-batch-size 32 --lr 0.05 --momentum 0.9 --dropout 0.2",
    .epoch_steps = 20,
    .evaluation_line = "Test loss ",
    .diverging = "--lr 1e30",
    .least_accuracy = 0.6,
    .tolerance = 1e-4};

namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const nlohmann::json& Whole() { return TrainerRuns::Get().whole; }

std::string Command(const std::string& flags) {
  return TrainerRuns::Get().Command(flags);
}

class TrainMnistTest : public ::testing::Test {
 protected:
  const TemporaryDirectory scratch_;
};

// Dropout depends on the images. Batches have 31 and 32 images, so shares
// differ by one image.
TEST_F(TrainMnistTest, OneProcessAndRanksComputeTheSame) {
  const nlohmann::json alone =
      Train({"OMP_NUM_THREADS=1 " + Command("")}).front();
  EXPECT_EQ(alone["world_size"], 1);
  EXPECT_NEAR(alone["loss"]["last"], Whole()["loss"]["last"],
              kTrainer.tolerance);
  EXPECT_NEAR(alone["evaluation"]["loss"], Whole()["evaluation"]["loss"],
              kTrainer.tolerance);

  // The printed loss is also the same, except for the last digits.
  const auto loss = [](const nlohmann::json& report, int ranks) {
    const std::string output = report["output"];
    EXPECT_THAT(output,
                ContainsRegex("\nEpoch 1 Loss [0-9]+\\.[0-9]{6} Global batch "
                              "size 32 on " +
                              std::to_string(ranks) + " ranks\n"));
    return output.substr(output.find("Epoch 1"), 17);
  };
  EXPECT_EQ(loss(alone, 1), loss(Whole(), 2));
}

// Manual allreduce instead of the optimizer, and sums with half the learning
// rate instead of means, which is exact; on two virtual nodes.
TEST_F(TrainMnistTest, ManualSumsGiveTheSameParametersAsTheOptimizer) {
  const nlohmann::json report =
      Train({"HVDLITE_VIRTUAL_NODES=1 " +
             OnRanks(2, Command("--manual --sum-gradients --lr 0.025 "
                                "--debug-print"))})
          .front();
  EXPECT_EQ(report["parameter_digests"], Whole()["parameter_digests"]);
  // Every rank prints its own loss.
  const std::string output = report["output"];
  for (const char* line :
       {"\\[0/2\\] Epoch 0 Loss [0-9.]+ Global batch size 32 on 2 ranks\n",
        "\\[1/2\\] Epoch 0 Loss [0-9.]+ Global batch size 32 on 2 ranks\n",
        "\\[1/2\\] Epoch 1 Loss [0-9.]+ Global batch size 32 on 2 ranks\n",
        "\\[0/2\\] Test loss [0-9.]+ accuracy 0\\.[0-9]{4}\n"}) {
    EXPECT_THAT(output, ContainsRegex(line));
  }
  EXPECT_EQ(CountOccurrences(output, "accuracy"), 2);
  // Both nodes are on one machine.
  EXPECT_THAT(report["machine"]["other programs"].get<std::string>(),
              HasSubstr(" of " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) +
                        " CPUs"));
}

TEST_F(TrainMnistTest, BatchMayHaveFewerImagesThanRanks) {
  const std::string command =
      Command("--max-steps 10 --dropout 0 --global-batch-size 1 --quiet");
  const std::vector<nlohmann::json> reports = Train(
      {Alone(command), OnRanks(2, command), OnRanks(2, command + " --manual")});
  for (const nlohmann::json& report : reports) {
    EXPECT_NEAR(report["loss"]["last"], reports[0]["loss"]["last"], 1e-4);
    EXPECT_EQ(report["output"], "");
  }
  EXPECT_EQ(reports[1]["parameter_digests"], reports[2]["parameter_digests"]);
}

TEST_F(TrainMnistTest, ResumingACompleteRunTrainsNothing) {
  const nlohmann::json report =
      Train(
          {"env -u OMP_NUM_THREADS HVDLITE_LOG_LEVEL=info " +
           Command("--resume " + TrainerRuns::Get().last_checkpoint.string())})
          .front();
  EXPECT_EQ(CountOccurrences(report["output"], "40 of 40 steps are done"), 1);
  EXPECT_EQ(report["parameter_digests"][0], Whole()["parameter_digests"][0]);
  // The log line at the start has the same number of threads as the report.
  const int threads = report["threads_per_rank"];
  EXPECT_THAT(report["output"].get<std::string>(),
              HasSubstr(", " + std::to_string(threads) + " thread" +
                        (threads == 1 ? ", " : "s, ")));
}

TEST_F(TrainMnistTest, UnwritableReportDoesNotStopTheTraining) {
  const std::string report = scratch_ / "report.json";
  const Finished training = RunCommand(
      "ulimit -f 0; HVDLITE_LOG_LEVEL=info " +
      Alone(
          Command("--epochs 1 --dropout 0.4 --threads 3 --report " + report)));
  EXPECT_EQ(training.exit_code, 74) << training.output;
  EXPECT_THAT(training.output,
              AllOf(HasSubstr("accuracy"), HasSubstr("File too large"),
                    HasSubstr(", 3 threads, ")));
  EXPECT_FALSE(std::filesystem::exists(report));
  // The dropout probability changes the loss.
  const std::string line = "Epoch 0 Loss ";
  const size_t loss = training.output.find(line);
  ASSERT_NE(loss, std::string::npos);
  EXPECT_GT(std::abs(std::stod(training.output.substr(loss + line.size(), 8)) -
                     Whole()["loss"]["first"].get<double>()),
            1e-3);
}

TEST_F(TrainMnistTest, CheckpointsOfAnEarlierRunAreReplacedOnlyWithOverwrite) {
  const std::string checkpoint = scratch_ / "checkpoint.pt";
  std::filesystem::copy_file(TrainerRuns::Get().cut_checkpoint,
                             checkpoint + ".previous");
  const std::string before = FileBytes(checkpoint + ".previous");
  const std::string command = Command("--checkpoint " + checkpoint);
  const Finished refused = RunCommand(Alone(command));
  EXPECT_EQ(refused.exit_code, support::kInputErrorExitCode);
  EXPECT_THAT(refused.output, HasSubstr("--resume auto continues"));
  EXPECT_EQ(FileBytes(checkpoint + ".previous"), before);
  // --overwrite removes all checkpoints of the earlier training.
  const Finished anew = RunCommand(Alone(command + " --epochs 1 --overwrite"));
  EXPECT_EQ(anew.exit_code, 0) << anew.output;
  EXPECT_THAT(anew.output, Not(HasSubstr("resumed")));
  EXPECT_FALSE(std::filesystem::exists(checkpoint + ".previous"));
  // After one epoch the next one follows.
  const nlohmann::json rest =
      Train({Alone(command + " --resume auto")}).front();
  EXPECT_EQ(CountOccurrences(rest["output"], "resumed: 20 of 40 steps"), 1);
  EXPECT_NEAR(rest["evaluation"]["loss"], Whole()["evaluation"]["loss"],
              kTrainer.tolerance);
}

// All trainers share this code, so the fastest one is tested.
TEST_F(TrainMnistTest, WrongInputIsPrintedOnce) {
  const std::string trace = scratch_ / "trace.json";
  const std::string recorded = "env HVDLITE_TIMELINE=" + trace + " ";
  const std::string other = scratch_ / "other";
  ASSERT_EQ(RunCommand(kPrograms +
                       "generate_mnist --train-images 320 "
                       "--test-images 200 --output " +
                       other)
                .exit_code,
            0);
  WriteFileBytes(trace, "earlier");
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {OnRanks(2, recorded + kPrograms + "train_mnist --data-dri x"),
       "did you mean --data-dir?"},
      {OnTwoRanks(Command(""), Command("--data-dir " + other)),
       "different numbers of images"},
      {OnTwoRanks(recorded + Command(""), Command("")), trace + "' on rank 0"},
      {recorded + Alone(Command("--report " + trace)),
       "which HVDLITE_TIMELINE writes"},
      {Alone(Command("--report /nonexistent/r.json")), "/nonexistent/r.json"},
      {"HVDLITE_VIRTUAL_NODES=2,2 " + Command(""), "2,2"},
      {"HVDLITE_ALLREDUCE_TABLE=/nonexistent/table " + Command(""),
       "HVDLITE_ALLREDUCE_TABLE=/nonexistent/table"}};
  std::vector<std::string> commands;
  for (const auto& [command, message] : wrong) commands.push_back(command);
  const std::vector<Finished> runs = RunCommands(commands);
  for (size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_EQ(runs[i].exit_code, support::kInputErrorExitCode)
        << runs[i].output;
    EXPECT_EQ(CountOccurrences(runs[i].output, wrong[i].second), 1)
        << runs[i].output;
  }
  EXPECT_EQ(FileBytes(trace), "earlier");
}

}  // namespace
}  // namespace hvdlite::trainers
