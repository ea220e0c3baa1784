// Epoch times that others have published, as text.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hvdlite::scaling_sweep {

struct PublishedColumn {
  std::string name;
  std::vector<double> seconds;  // one for each of PublishedTimes::n
};

struct PublishedTimes {
  std::vector<std::string> source;  // the file's comments, without '#'
  std::vector<int> n;               // ascending, from 1
  std::vector<PublishedColumn> columns;
};

// CSV: lines of comments ("# ..."), a line of names, of which the first is what
// N counts, then a line for each N. Errors name file and line.
absl::StatusOr<PublishedTimes> ReadPublishedTimes(const std::string& file);

// Speed-up and strong efficiency T1/(N*TN) of each, as a table for people.
std::string PublishedText(const PublishedTimes& times);

}  // namespace hvdlite::scaling_sweep
