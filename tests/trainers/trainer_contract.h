// Runs trainings as a user does, for tests that are the same for every trainer.
// These tests are in trainer_contract.cc; the test of each trainer adds its
// own.
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

// The command without MPI, with as many threads as the tests' mpirun uses.
inline std::string Alone(const std::string& command) {
  return "HVDLITE_BACKEND=single OMP_NUM_THREADS=1 " + command;
}

// Runs these commands of trainers at the same time. Returns their reports, with
// the printed text as "output"; null for a failed one.
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

// The trainer under test.
struct Trainer {
  std::string program;
  std::string generate;  // makes the data in the directory --output
  std::string flags;     // for two epochs of `epoch_steps`
  int64_t epoch_steps = 0;
  std::string evaluation_line;  // part of the line after each epoch
  std::string diverging;        // flags that cause divergence
  double least_accuracy = 0;    // after two epochs; well above chance
  // Tolerance for losses if any number of ranks computes the same as one
  // process.
  double tolerance = 0;
};

// Each trainer's test defines it.
extern const Trainer kTrainer;

// Runs that tests share; each is made once. Tests must not change their files.
struct TrainerRuns {
  static const TrainerRuns& Get();
  TrainerRuns();

  // The command of a training on the data with additional flags.
  std::string Command(const std::string& flags) const;

  const TemporaryDirectory directory;
  // Two epochs on two ranks, with a checkpoint after `cut` steps, and the
  // timeline.
  const int64_t cut;
  const std::filesystem::path cut_checkpoint;
  const std::filesystem::path last_checkpoint;
  nlohmann::json whole;
  Finished timeline_by_rank;  // output of timeline_viewer
  Finished trace_rules;       // check that other viewers can show it
  // The same training resumed at the cut, past a newer truncated checkpoint;
  // interrupted again; and then resumed to the end.
  nlohmann::json middle;
  nlohmann::json rest;
  // A restarted job that continues from the cut on three ranks.
  nlohmann::json on_three_ranks;
  Finished diverging;
  bool diverging_changed_its_checkpoint = false;
  Finished missing_data;  // missing on rank 1
  Finished checked_data;
  std::string trace_of_checked_data;
};

}  // namespace hvdlite::trainers
