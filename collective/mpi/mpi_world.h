// The processes of MPI that are the world's ranks, and what becomes of them
// where MPI outlives one that dies (User-Level Failure Mitigation, ULFM).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace hvdlite::collective {

// MPI must be initialised for everything here; one calling thread at a time.

// A communicator as MPI_Comm_c2f tells it.
using MpiHandle = int64_t;

// The communicator of the ranks: MPI_COMM_WORLD, or where MPI outlives ranks a
// communicator of those that are left. Its errors are returned.
MpiHandle MpiWorldHandle();

// Whether a rank that dies leaves the others running: this MPI has ULFM, and
// its launcher was asked for it (mpirun --with-ft ulfm).
bool MpiOutlivesRanks();

// What a world begins with. Where MPI outlives ranks and the last world was
// abandoned: revokes its communicators, so that every rank comes back from its
// calls on them, and makes that communicator one of the ranks that live, in the
// order that they had. Collective then, over these. Errors: Unavailable when
// MPI fails.
absl::Status BeginMpiWorld();

// The world that began last cannot be used any more, and was not shut down.
void AbandonMpiWorld();

// Whether processes have died that were ranks of a world of this process.
bool MpiHasLostRanks();

// The ranks of the world of which MPI has heard that they died, ascending.
std::vector<int> DeadMpiRanks();

// A communicator of this world, for as long as it exists.
void TrackMpiCommunicator(MpiHandle communicator);
void ForgetMpiCommunicator(MpiHandle communicator);

// Ends all ranks' calls on the world's communicator and what is tracked, once
// one has failed: those that wait for a rank that has come back from an error
// would wait for ever. Nothing where MPI does not outlive ranks.
void RevokeMpiWorld();

}  // namespace hvdlite::collective
