// What Open MPI leaves behind when its launcher is killed.
#pragma once

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
// ("vader_segment.HOST.UID.JOB.RANK") that no process maps, and session folders
// ("ompi.HOST.UID/pid.PID") whose launcher is no more, if they are older than
// a minute at `now`. Returns how many. Leaves alone what it cannot look at.
int RemoveLeftovers(const LeftoverPlaces& places, absl::Time now);

}  // namespace hvdlite::launch
