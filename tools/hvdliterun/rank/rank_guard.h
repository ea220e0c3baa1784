// Ends the processes of a rank with it, and passes signals to them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "support/machine.h"

namespace hvdlite::launch {

// GroupReaper: no process of a rank stays on the node when its launcher or its
// starter was killed.
//
// The reaper is a small process. It kills a process group when its starter ends
// without Release(), also by SIGKILL. A death signal is not enough: it reaches
// the program, but not the children of a wrapper script. Processes that have
// left the group are not killed. The reaper also ends its starter when that has
// lost its launcher, even if it is stopped or waits for a disk.
//
//   GroupReaper reaper = GroupReaper::Start({.group = program}).value();
//   ...                  // waits for the program
//   reaper.Release();    // processes that it leaves behind may stay
class GroupReaper {
 public:
  struct Options {
    pid_t group = 0;
    // The parent of the reaper's starter. About a second after the parent has
    // ended, the starter gets SIGTERM, and SIGKILL if it still runs after
    // `grace`.
    std::optional<pid_t> launcher = {};
    absl::Duration grace = absl::Seconds(5);
  };

  // Only for single-threaded programs, because it forks. The reaper has none of
  // this process's descriptors and gets none of its signals.
  static absl::StatusOr<GroupReaper> Start(const Options& options);

  // Ends the reaper and waits for its end. The group is not changed.
  void Release();

 private:
  GroupReaper(pid_t process, base::Descriptor alive)
      : process_(process), alive_(std::move(alive)) {}

  pid_t process_;
  base::Descriptor alive_;  // closes when this process ends
};

// Passes a signal that this process got to the process group of `program`.
// SIGUSR1 and SIGUSR2 go only to processes of the group that have a handler,
// because they would terminate the others. SIGUSR1 requests an early stop: if
// no process has a handler, the group gets SIGTERM instead.
void PassSignal(int number, pid_t program,
                const support::SystemFiles& files = support::SystemFiles());

}  // namespace hvdlite::launch
