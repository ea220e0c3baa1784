// Trainings as a user starts them, and what every trainer owes, whatever it
// trains: trainer_contract.cc has the tests of that, which the tests of each
// trainer share with what is its own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/fakes/temporary_directory.h"
#include "tests/testing/run_command.h"

namespace hvdlite::trainers {

inline const std::string kPrograms = HVDLITE_TEST_BIN_DIR "/";

// The command on so many ranks.
inline std::string OnRanks(int ranks, const std::string& command) {
  return kMpirun + " " + std::to_string(ranks) + " " + command;
}

// The command without MPI, with the threads of the tests' mpirun.
inline std::string Alone(const std::string& command) {
  return "HVDLITE_BACKEND=single OMP_NUM_THREADS=1 " + command;
}

// Runs these commands of trainers at the same time; their reports, with what
// was printed as "output"; null where one has failed.
inline std::vector<nlohmann::json> Train(
    const std::vector<std::string>& trainings) {
  const TemporaryDirectory reports;
  const auto report = [&](size_t i) { return reports / std::to_string(i); };
  std::vector<std::string> commands;
  for (size_t i = 0; i < trainings.size(); ++i) {
    commands.push_back(trainings[i] + " --report " + report(i).string());
  }
  std::vector<nlohmann::json> found;
  for (const Finished& training : RunCommands(commands)) {
    EXPECT_EQ(training.exit_code, 0) << training.output;
    found.push_back(ReadReport(report(found.size())));
    if (found.back().is_discarded()) {
      found.back() = nullptr;
    } else {
      found.back()["output"] = training.output;
    }
  }
  return found;
}

// What the tests of a trainer are about.
struct Trainer {
  std::string program;
  std::string generate;  // the data, into the folder that --output names
  std::string flags;     // of a training of two epochs of `epoch_steps`
  int64_t epoch_steps = 0;
  std::string evaluation_line;  // has this, after each epoch
  std::string diverging;        // flags
  double least_accuracy = 0;    // after the two epochs: chance is far below
  // Of losses, where any number of ranks computes what one process would.
  double tolerance = 0;
};

// Defined by the tests of each.
extern const Trainer kTrainer;

// The runs that tests share, each made once. No test may change their files.
struct TrainerRuns {
  static const TrainerRuns& Get();
  TrainerRuns();

  // A training on the data, with these flags, too.
  std::string Command(const std::string& flags) const;

  const TemporaryDirectory folder;
  // Two epochs on two ranks, with a checkpoint after `cut` steps, and its
  // timeline.
  const int64_t cut;
  const std::filesystem::path cut_checkpoint;
  const std::filesystem::path last_checkpoint;
  nlohmann::json whole;
  Finished timeline_by_rank;  // what timeline_viewer says of it
  Finished trace_rules;       // whether other viewers show it
  // The same from the cut on, past a newer checkpoint that is cut short; cut
  // again; and from there to the end.
  nlohmann::json middle;
  nlohmann::json rest;
  // From the cut on, as a job that is started again on three ranks.
  nlohmann::json on_three_ranks;
  Finished diverging;
  bool diverging_changed_its_checkpoint = false;
  Finished missing_data;  // of rank 1
  Finished checked_data;
  std::string trace_of_checked_data;
};

}  // namespace hvdlite::trainers
