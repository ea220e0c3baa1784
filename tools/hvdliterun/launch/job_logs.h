// The folder of --output-dir, but for the logs of the ranks themselves.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace hvdlite::launch {

// FailedPrecondition if the directory holds logs of an earlier job, which this
// one's would replace or be mixed with.
absl::Status CheckLogs(const std::string& directory);

// Whatever an earlier job has left there, and nothing else.
absl::Status RemoveLogs(const std::string& directory);

// The plan beside the logs, for whoever looks at them later.
absl::Status WritePlan(const std::string& folder, const std::string& plan);

}  // namespace hvdlite::launch
