// Sample: what one run of a sweep gave.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hvdlite::scaling_sweep {

struct Sample {
  std::string configuration;  // Key()
  int repeat = 0;
  // Of which a table shows ...
  int nodes = 1;
  int ranks = 1;
  int threads = 0;  // that were asked for; 0: the launcher's choice
  std::string mapping;
  std::string setting;
  bool oversubscribed = false;
  int threads_used = 0;  // that a rank had; 0: not known

  std::string host;
  int cores = 0;           // of a node
  std::string start_time;  // UTC, as 2026-01-31T12:00:00Z
  std::vector<std::string> command;
  // Variables that change how programs compute and communicate: the run's own,
  // and the sweep's where the run has none.
  std::map<std::string, std::string> environment;

  int exit_code = 0;
  double seconds = 0;
  // Of all ranks together; nullopt if the run failed, for the reason `failure`.
  std::optional<double> items_per_second;
  std::string failure;
  // Relative to the results' folder; empty: none.
  std::string report;
  std::string trace;  // rank 0's part if the ranks' were not merged
  std::string log;

  bool operator==(const Sample&) const = default;
};

// One line of JSON, without its end.
std::string ToJsonLine(const Sample& sample);

// InvalidArgument for what ToJsonLine did not write.
absl::StatusOr<Sample> ParseSample(const std::string& line);

}  // namespace hvdlite::scaling_sweep
