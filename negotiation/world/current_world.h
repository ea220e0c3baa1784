// The current world of this process. There is at most one.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collective/mpi/mpi_world.h"
#include "hvdlite/config.h"
#include "negotiation/world/world.h"

namespace hvdlite::internal {

// Calls World::Start(config, ranks, versions) and makes the result the
// process's world. FailedPrecondition if the process has a world, cannot have
// another one, or CheckNotForked() fails. If the process exits without closing
// the world, the other ranks are informed and the world is closed, within 20 s.
// If it cannot be closed cleanly, the process ends by _exit with its exit code.
absl::Status StartCurrentWorld(const Config& config,
                               const collective::MpiRanks& ranks = {},
                               const std::string& versions = "");

// FailedPrecondition in a process that was forked from a rank, or from a
// process that was about to become one: hvdlite cannot be used there. In such a
// process, the functions here take no lock and find no world.
absl::Status CheckNotForked();

// Null if there is no world.
std::shared_ptr<World> CurrentWorldOrNull();

// Returns the current world and clears it.
std::shared_ptr<World> TakeCurrentWorld();

// Calls World::Close for a world that was taken. It is never freed if it was
// abandoned.
absl::Status CloseWorld(std::shared_ptr<World> world, const std::string& reason,
                        absl::Duration timeout);

// Call this at the beginning of MPI_Finalize, the last moment at which the
// world can use MPI. If there is a world, takes and closes it, with a warning.
void LeaveAtFinalize();

// Closes the process's world, which is broken, and starts another one of the
// remaining ranks. The configuration is the same, but the timeline gets a file
// of its own. Collective over the remaining ranks. Errors: FailedPrecondition
// if this is not possible, if too few ranks are left (base::kMinRanksVariable),
// or if it has happened several times without the loss of a rank. Otherwise the
// errors of StartCurrentWorld.
absl::Status ReplaceBrokenWorld();
// How often a world was replaced.
int ReplacedWorlds();

}  // namespace hvdlite::internal
