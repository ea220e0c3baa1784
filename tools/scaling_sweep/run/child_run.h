// Runs one program to its end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/support/process.h"

namespace hvdlite::scaling_sweep {

struct ChildEnd {
  int exit_code = 0;  // or 128 + N if signal N has ended it, as shells have it
  bool timed_out = false;
  // A signal to this process, which arrived before a success.
  std::optional<int> stopped_by;
  absl::Duration duration;
};

// Starts `command`, found as a shell finds it, in a process group of its own,
// with standard output and error into the file `log`, and waits. If it takes
// longer than `limit`, or a stop signal arrives, the group gets SIGTERM, and
// SIGKILL after `grace`. If the calling thread ends meanwhile, even by SIGKILL,
// the program gets SIGTERM. Errors: the program cannot be started, `log` cannot
// be written.
absl::StatusOr<ChildEnd> RunChild(const Command& command,
                                  const std::string& log, absl::Duration limit,
                                  absl::Duration grace,
                                  const base::SignalPipe& stop);

}  // namespace hvdlite::scaling_sweep
