// GroupReaper: nothing of a rank is left on its node when what started it was
// killed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/descriptor.h"

namespace hvdlite::launch {

// A small process that ends a process group once the process that started the
// reaper has ended without Release(), by SIGKILL, too: a death signal reaches
// the program alone, and not the children of a wrapper script. What has left
// the group is left alone.
//
//   GroupReaper reaper = GroupReaper::Start({.group = program}).value();
//   ...                  // waits for the program
//   reaper.Release();    // what it leaves behind on purpose may stay
class GroupReaper {
 public:
  struct Options {
    pid_t group = 0;
    // When this process ends, whoever started the reaper gets SIGTERM, and
    // SIGKILL if it is still there after `grace`.
    std::optional<pid_t> launcher = {};
    absl::Duration grace = absl::Seconds(5);
  };

  // Single-threaded programs only: it forks. The reaper holds none of this
  // process's descriptors, and gets none of its signals.
  static absl::StatusOr<GroupReaper> Start(const Options& options);

  // Ends the reaper and waits for its end; the group stays as it is.
  void Release();

 private:
  GroupReaper(pid_t process, base::Descriptor alive)
      : process_(process), alive_(std::move(alive)) {}

  pid_t process_;
  base::Descriptor alive_;  // closes when this process ends
};

}  // namespace hvdlite::launch
