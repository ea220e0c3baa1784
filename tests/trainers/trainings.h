// Trainings as a user starts them, on any number of ranks, and their reports.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/fakes/temporary_directory.h"
#include "tests/testing/run_command.h"

namespace hvdlite::trainers {

// On how many ranks, and by which flags.
using Training = std::pair<int, std::string>;

// Those of a suite of tests, which share what they can.
class Trainings {
 public:
  // `command` starts a training.
  explicit Trainings(std::function<std::string(const Training&)> command)
      : command_(std::move(command)) {}

  // Runs them at the same time; their reports, with what was printed as
  // "output".
  std::vector<nlohmann::json> Train(const std::vector<Training>& trainings) {
    const TemporaryDirectory reports;
    std::vector<std::string> commands;
    for (const auto& [ranks, flags] : trainings) {
      const std::string report = reports / std::to_string(commands.size());
      commands.push_back(command_({ranks, flags + " --report " + report}));
    }
    std::vector<nlohmann::json> found;
    for (const Finished& training : RunCommands(commands)) {
      EXPECT_EQ(training.exit_code, 0) << training.output;
      found.push_back(ReadReport(reports / std::to_string(found.size())));
      found.back()["output"] = training.output;
    }
    return found;
  }

  // As Train(), but a training that was asked for before is not run again. No
  // test may change the files that such a training reads or writes.
  std::vector<nlohmann::json> Trained(const std::vector<Training>& trainings) {
    std::vector<Training> missing;
    for (const Training& training : trainings) {
      if (trained_.count(training) == 0) missing.push_back(training);
    }
    const std::vector<nlohmann::json> made = Train(missing);
    for (size_t i = 0; i < missing.size(); ++i) trained_[missing[i]] = made[i];
    std::vector<nlohmann::json> reports;
    for (const Training& training : trainings) {
      reports.push_back(trained_.at(training));
    }
    return reports;
  }

 private:
  const std::function<std::string(const Training&)> command_;
  std::map<Training, nlohmann::json> trained_;
};

}  // namespace hvdlite::trainers
