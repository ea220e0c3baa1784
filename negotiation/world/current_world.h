// The world of this process: one at a time, or none.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collective/mpi/mpi_world.h"
#include "hvdlite/config.h"
#include "negotiation/world/world.h"

namespace hvdlite::internal {

// Makes World::Start(config, ranks, versions) the process's world.
// FailedPrecondition where it has one, or can have no other, or
// CheckNotForked() fails. A process that exits without closing it tells the
// other ranks that it is gone, and takes it down, in 20 s at most; one that
// cannot be taken down cleanly ends by _exit, with its exit code.
absl::Status StartCurrentWorld(const Config& config,
                               const collective::MpiRanks& ranks = {},
                               const std::string& versions = "");

// FailedPrecondition in a process that was forked from a rank, or from one that
// was about to become one: it can use nothing of hvdlite's. Everything here
// takes no lock there, and finds no world.
absl::Status CheckNotForked();

// Null where there is none.
std::shared_ptr<World> CurrentWorldOrNull();

// As CurrentWorldOrNull; afterwards there is none.
std::shared_ptr<World> TakeCurrentWorld();

// World::Close of one that was taken; keeps it for ever if it was abandoned.
absl::Status CloseWorld(std::shared_ptr<World> world, const std::string& reason,
                        absl::Duration timeout);

// To be called at the beginning of MPI_Finalize, the last moment at which the
// world can use MPI: takes and closes it, with a warning where there is one.
void LeaveAtFinalize();

// Closes the process's world, which is broken, and starts another of the ranks
// that are left, with the same configuration but for the timeline, which gets a
// file of its own. Collective among them. Errors: FailedPrecondition where that
// cannot be, too few are left (base::kMinRanksVariable), or it was done some
// times and no rank was lost; otherwise those of StartCurrentWorld.
absl::Status ReplaceBrokenWorld();
// How often it was.
int ReplacedWorlds();

}  // namespace hvdlite::internal
