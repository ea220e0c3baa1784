// What runs gave: a Sample of each run, and results.jsonl, which has a line for
// each of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// What one run of a sweep gave.
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
  int cores = 0;  // of a node
  // The program's ProgramReport::machine. Where it says nothing, or names the
  // host that the sweep ran on, what is known of that host is added.
  std::map<std::string, std::string> machine;
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

inline constexpr char kResultsName[] = "results.jsonl";

struct Results {
  Spec spec;
  std::vector<Sample> samples;  // in the file's order
};

// Of the folder `directory`. The first line holds the SPEC; a last line that is
// cut, as of a program that was killed, does not count. Errors name the file
// and the line.
absl::StatusOr<Results> ReadResults(const std::string& directory);

class ResultsFile {
 public:
  // Begins the results of `spec` in the folder `directory`, which it makes, or
  // goes on with the samples that are there. FailedPrecondition if these are of
  // another SPEC, or if another ResultsFile, here or in another process, has
  // them open; Internal as Append.
  static absl::StatusOr<ResultsFile> Open(const std::string& directory,
                                          const Spec& spec);

  const std::string& directory() const { return directory_; }
  const std::vector<Sample>& samples() const { return samples_; }

  // Writes the sample to the disk before it returns. Internal if that fails, as
  // on a full disk.
  absl::Status Append(const Sample& sample);

 private:
  ResultsFile(std::string directory, std::vector<Sample> samples,
              base::Descriptor file)
      : directory_(std::move(directory)),
        samples_(std::move(samples)),
        file_(std::move(file)) {}

  absl::Status WriteLine(const std::string& line);

  std::string directory_;
  std::vector<Sample> samples_;
  base::Descriptor file_;
};

}  // namespace hvdlite::scaling_sweep
