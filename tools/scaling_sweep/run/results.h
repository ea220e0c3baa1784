// Sample: the result of a run. ResultsFile: results.jsonl, with one line per
// sample.
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

// The result of one run of a sweep.
struct Sample {
  std::string configuration;  // Key()
  int repeat = 0;
  // The parts of the configuration that a table shows.
  int nodes = 1;
  int ranks = 1;
  int threads = 0;  // requested; 0: the launcher's choice
  std::string mapping;
  std::string setting;
  bool oversubscribed = false;
  int threads_used = 0;  // per rank; 0: not known

  std::string host;
  int cores = 0;  // per node
  // The program's ProgramReport::machine. If it is empty or names the host of
  // the sweep, the known properties of that host are added.
  std::map<std::string, std::string> machine;
  std::string start_time;  // UTC, as 2026-01-31T12:00:00Z
  std::vector<std::string> command;
  // Variables that change how programs compute and communicate: those of the
  // run, and others of the sweep's environment.
  std::map<std::string, std::string> environment;

  int exit_code = 0;
  double seconds = 0;
  // Speed of all ranks together; nullopt if the run failed (see `failure`).
  std::optional<double> items_per_second;
  std::string failure;
  // Paths relative to the directory of the results; empty: none.
  std::string report;
  std::string trace;  // rank 0's trace file if the ranks' were not merged
  std::string log;

  bool operator==(const Sample&) const = default;
};

// Returns one line of JSON without a newline.
std::string ToJsonLine(const Sample& sample);

// Reads a line of ToJsonLine; InvalidArgument for other lines.
absl::StatusOr<Sample> ParseSample(const std::string& line);

inline constexpr char kResultsName[] = "results.jsonl";

struct Results {
  Spec spec;
  std::vector<Sample> samples;  // in the file's order
};

// Reads the results in `directory`. The first line contains the spec. An
// incomplete last line (the program was killed) is ignored. Errors name the
// file and the line.
absl::StatusOr<Results> ReadResults(const std::string& directory);

class ResultsFile {
 public:
  // Opens the results of `spec` in `directory`: makes the directory, or
  // continues with the samples that are there. FailedPrecondition if they
  // belong to another spec, or if another ResultsFile (of any process) has them
  // open; Internal as in Append.
  static absl::StatusOr<ResultsFile> Open(const std::string& directory,
                                          const Spec& spec);

  const std::string& directory() const { return directory_; }
  const std::vector<Sample>& samples() const { return samples_; }

  // Writes the sample to the disk before it returns. Internal if that fails,
  // for example on a full disk.
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
