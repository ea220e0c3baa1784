// Removes files that Open MPI leaves behind when its launcher is killed.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/time/time.h"

namespace hvdlite::launch {

// The places of these files. Tests use other directories.
struct LeftoverPlaces {
  std::string host;  // host name: containers may share the directories
  std::string shared_memory = "/dev/shm";
  std::string temporary;  // has the session directories: $TMPDIR or /tmp
  std::string processes = "/proc";
};

// Removes leftovers of this user on this host that are older than a minute at
// `now`: shared memory segments ("vader_segment.HOST.UID.JOB.RANK" of Open MPI
// 4, "sm_segment..." of 5) that no process maps, and session directories
// ("ompi.HOST.UID/pid.PID" of 4, "prterun.HOST.PID.UID" and similar of 5) whose
// launcher has ended. Keeps everything that it cannot examine. Returns how many
// it removed.
int RemoveLeftovers(const LeftoverPlaces& places, absl::Time now);

// Removes this user's session directories of the ended launcher with this
// process id. Returns how many it removed.
int RemoveSessionsOf(pid_t launcher, const LeftoverPlaces& places);

}  // namespace hvdlite::launch
