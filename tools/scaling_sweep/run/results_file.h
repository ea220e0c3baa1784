// results.jsonl: what a sweep has measured, a line for each run.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "tools/scaling_sweep/run/sample.h"
#include "tools/scaling_sweep/sweep.pb.h"

namespace hvdlite::scaling_sweep {

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
  // goes on with those that are there. FailedPrecondition if they are another
  // SPEC's, or another ResultsFile, here or in another process, has them open;
  // Internal as Append.
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
