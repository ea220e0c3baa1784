// What is done about a rank while its program runs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "support/machine.h"

namespace hvdlite::launch {

// Nothing of a rank is left on its node when what started it was killed.
//
// A small process that ends a process group once the process that started the
// reaper has ended without Release(), by SIGKILL, too: a death signal reaches
// the program alone, and not the children of a wrapper script. What has left
// the group is left alone. The process that started the reaper ends, too, once
// it has lost its launcher, even while it is stopped or waits for a disk.
//
//   GroupReaper reaper = GroupReaper::Start({.group = program}).value();
//   ...                  // waits for the program
//   reaper.Release();    // what it leaves behind on purpose may stay
class GroupReaper {
 public:
  struct Options {
    pid_t group = 0;
    // The parent of the process that starts the reaper. When it has ended, that
    // process gets SIGTERM, about a second later, and SIGKILL if it is still
    // there after `grace`.
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

// Hands a signal that was sent to this process to the program, which leads its
// process group. SIGUSR1 and SIGUSR2 go to those of the group that have a
// handler: they would end the others. SIGUSR1 asks for an early stop: where
// nobody has a handler, the group gets SIGTERM instead.
void PassSignal(int number, pid_t program,
                const support::SystemFiles& files = support::SystemFiles());

}  // namespace hvdlite::launch
