#include "tests/trainers/trainer_contract.h"

#include <gmock/gmock.h>

#include "tests/testing/fakes/file_bytes.h"

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const TrainerRuns& Runs() { return TrainerRuns::Get(); }

int64_t Steps() { return 2 * kTrainer.epoch_steps; }
int64_t SecondCut() { return Runs().cut + 3; }

// "27 of 40 steps are done"
std::string Done(int64_t steps, int64_t of) {
  return std::to_string(steps) + " of " + std::to_string(of) +
         " steps are done\n";
}

TEST(TrainerContract, LearnsAndRanksHaveEqualParameters) {
  const nlohmann::json& whole = Runs().whole;
  EXPECT_EQ(whole["world_size"], 2);
  EXPECT_EQ(whole["steps"], Steps());
  EXPECT_LT(whole["loss"]["last"], 0.9 * whole["loss"]["first"].get<double>());
  EXPECT_GT(whole["evaluation"]["accuracy"], kTrainer.least_accuracy);
  ASSERT_EQ(whole["parameter_digests"].size(), 2U);
  EXPECT_EQ(whole["parameter_digests"][0], whole["parameter_digests"][1]);
  EXPECT_EQ(whole["parameters_identical"], true);
}

TEST(TrainerContract, OnlyRankZeroPrints) {
  EXPECT_EQ(CountOccurrences(Runs().whole["output"], kTrainer.evaluation_line),
            2)
      << Runs().whole["output"];
}

TEST(TrainerContract, TimelineHasThePhasesOfBothRanks) {
  const Finished& viewer = Runs().timeline_by_rank;
  ASSERT_EQ(viewer.exit_code, 0) << viewer.output;
  for (const char* name :
       {"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "MEMCPY_IN_FUSION_BUFFER",
        "MPI_ALLREDUCE", "MEMCPY_OUT_FUSION_BUFFER", "FORWARD", "BACKWARD"}) {
    // One line in the table of all ranks, and one in the table of each rank.
    EXPECT_EQ(CountOccurrences(viewer.output, "\n" + std::string(name) + " "),
              3)
        << name << " in\n"
        << viewer.output;
  }
}

TEST(TrainerContract, TimelineFollowsTheRulesOfViewers) {
  EXPECT_EQ(Runs().trace_rules.exit_code, 0) << Runs().trace_rules.output;
}

TEST(TrainerContract, TwiceInterruptedTrainingEqualsUninterrupted) {
  const nlohmann::json& middle = Runs().middle;
  EXPECT_EQ(CountOccurrences(middle["output"], "using the previous one"), 1)
      << middle["output"];
  EXPECT_EQ(CountOccurrences(middle["output"],
                             "resumed: " + Done(Runs().cut, SecondCut())),
            1)
      << middle["output"];
  const nlohmann::json& rest = Runs().rest;
  EXPECT_EQ(CountOccurrences(rest["output"],
                             "resumed: " + Done(SecondCut(), Steps())),
            1)
      << rest["output"];
  EXPECT_EQ(rest["steps"], Steps() - SecondCut());
  EXPECT_EQ(rest["parameter_digests"], Runs().whole["parameter_digests"]);
  EXPECT_EQ(rest["evaluation"], Runs().whole["evaluation"]);
}

TEST(TrainerContract, RestartWithOtherRanksUsesTheRemainingData) {
  const nlohmann::json& job = Runs().on_three_ranks;
  EXPECT_THAT(job["output"].get<std::string>(),
              HasSubstr("resumed: " + Done(Runs().cut, Steps())));
  EXPECT_EQ(job["world_size"], 3);
  EXPECT_EQ(job["steps"], Steps() - Runs().cut);
  EXPECT_EQ(job["parameters_identical"], true);
  if (kTrainer.tolerance == 0) return;
  EXPECT_NEAR(job["evaluation"]["loss"], Runs().whole["evaluation"]["loss"],
              kTrainer.tolerance);
}

TEST(TrainerContract, DivergenceIsPrintedOnceAndKeepsTheCheckpoint) {
  EXPECT_EQ(Runs().diverging.exit_code, 1) << Runs().diverging.output;
  EXPECT_EQ(CountOccurrences(Runs().diverging.output, "is not finite"), 1)
      << Runs().diverging.output;
  EXPECT_FALSE(Runs().diverging_changed_its_checkpoint);
}

TEST(TrainerContract, MissingDataOnOneRankEndsAllWithOneError) {
  const Finished& run = Runs().missing_data;
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_EQ(CountOccurrences(run.output, kTrainer.program + ": "), 1)
      << run.output;
  EXPECT_EQ(CountOccurrences(run.output, "/nonexistent/data"), 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr(" on rank 1: "));
}

TEST(TrainerContract, CheckDataDoesNotTrain) {
  const Finished& run = Runs().checked_data;
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(CountOccurrences(run.output, " can be read\n"), 1) << run.output;
  EXPECT_THAT(run.output, Not(HasSubstr("step")));
  EXPECT_THAT(run.output, Not(HasSubstr(kTrainer.evaluation_line)));
  EXPECT_EQ(Runs().trace_of_checked_data, "earlier");
}

}  // namespace

const TrainerRuns& TrainerRuns::Get() {
  static const TrainerRuns runs;
  return runs;
}

std::string TrainerRuns::Command(const std::string& flags) const {
  return kPrograms + kTrainer.program + " --data-dir " +
         (directory / "data").string() + " --epochs 2 " + kTrainer.flags + " " +
         flags;
}

TrainerRuns::TrainerRuns()
    : cut(kTrainer.epoch_steps + kTrainer.epoch_steps / 3),
      cut_checkpoint(directory / "whole.pt.previous"),
      last_checkpoint(directory / "whole.pt") {
  const auto file = [&](const char* name) {
    return (directory / name).string();
  };
  const Finished generated =
      RunCommand(kPrograms + kTrainer.generate + " --output " + file("data"));
  EXPECT_EQ(generated.exit_code, 0) << generated.output;

  whole = Train({"HVDLITE_TIMELINE=" + file("trace") + " " +
                 OnRanks(2, Command("--checkpoint-every 3 "
                                    "--checkpoint-every-steps " +
                                    std::to_string(cut) + " --checkpoint " +
                                    last_checkpoint.string()))})
              .front();
  timeline_by_rank =
      RunCommand(kPrograms + "timeline_viewer --by-rank " + file("trace"));
  trace_rules =
      RunCommand("python3 -B " HVDLITE_TRACE_RULES " " + file("trace"));

  const std::string last = FileBytes(last_checkpoint);
  WriteFileBytes(file("twice.pt"), last.substr(0, last.size() / 2));
  WriteFileBytes(file("twice.pt.previous"), FileBytes(cut_checkpoint));
  WriteFileBytes(file("job.pt"), FileBytes(cut_checkpoint));
  const std::vector<nlohmann::json> resumed = Train(
      {OnRanks(2, Command("--resume auto --checkpoint " + file("twice.pt") +
                          " --max-steps " + std::to_string(cut + 3))),
       "HVDLITE_RESTARTS=1 " +
           OnRanks(3, Command("--checkpoint " + file("job.pt")))});
  middle = resumed[0];
  on_three_ranks = resumed[1];
  rest = Train({OnRanks(2, Command("--resume " + file("twice.pt")))}).front();

  const std::string before = FileBytes(file("twice.pt"));
  WriteFileBytes(file("earlier"), "earlier");
  const std::string elsewhere = " --data-dir /nonexistent/data";
  const std::vector<Finished> others = RunCommands(
      {OnRanks(2, Command("--resume auto --checkpoint " + file("twice.pt") +
                          " " + kTrainer.diverging)),
       OnTwoRanks(Command(""), Command(elsewhere)),
       "HVDLITE_TIMELINE=" + file("earlier") + " " +
           Alone(Command("--check-data"))});
  diverging = others[0];
  diverging_changed_its_checkpoint = FileBytes(file("twice.pt")) != before;
  missing_data = others[1];
  checked_data = others[2];
  trace_of_checked_data = FileBytes(file("earlier"));
}

}  // namespace hvdlite::trainers
