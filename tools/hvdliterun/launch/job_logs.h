// The directory of --output-dir, except for the logs that ranks write.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace hvdlite::launch {

// FailedPrecondition if the directory contains logs of an earlier job, which
// the new logs would replace or mix with.
absl::Status CheckLogs(const std::string& directory);

// Removes everything that an earlier job has left there, and nothing else.
absl::Status RemoveLogs(const std::string& directory);

// Writes the plan beside the logs, for later reading.
absl::Status WritePlan(const std::string& directory, const std::string& plan);

}  // namespace hvdlite::launch
