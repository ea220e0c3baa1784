// What Open MPI leaves behind when its launcher is killed.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/time/time.h"

namespace hvdlite::launch {

// Where it lies; other folders in tests.
struct LeftoverPlaces {
  std::string host;  // its name: containers may share what follows
  std::string shared_memory = "/dev/shm";
  std::string temporary;  // the folder of session folders: $TMPDIR or /tmp
  std::string processes = "/proc";
};

// Removes, of this user and on this host, segments of shared memory
// ("vader_segment.HOST.UID.JOB.RANK" of Open MPI 4, "sm_segment..." of 5) that
// no process maps, and session folders ("ompi.HOST.UID/pid.PID" of 4,
// "prterun.HOST.PID.UID" and the like of 5) whose launcher is no more, if they
// are older than a minute at `now`. Returns how many. Leaves alone what it
// cannot look at.
int RemoveLeftovers(const LeftoverPlaces& places, absl::Time now);

// Removes this user's session folders of the launcher with this process id,
// which has ended. Returns how many.
int RemoveSessionsOf(pid_t launcher, const LeftoverPlaces& places);

}  // namespace hvdlite::launch
