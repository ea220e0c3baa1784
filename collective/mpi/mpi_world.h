// The processes of MPI that are the world's ranks, and what becomes of them
// where MPI outlives one that dies (User-Level Failure Mitigation, ULFM).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"

namespace hvdlite::collective {

// MPI must be initialised for everything here; one calling thread at a time.

// A communicator as MPI_Comm_c2f tells it.
using MpiHandle = int64_t;

// Which processes are a world's ranks: all, or those of a communicator.
struct MpiRanks {
  std::optional<MpiHandle> communicator = std::nullopt;
  // Those of the world that was abandoned last, as far as they live.
  bool survivors = false;
};

// The communicator of the ranks: MPI_COMM_WORLD, or a duplicate of what the
// program gave, or where MPI outlives ranks a communicator of those that are
// left. The latters' errors are returned.
MpiHandle MpiWorldHandle();

// Whether a rank that dies leaves the others running: this MPI has ULFM, and
// its launcher was asked for it (mpirun --with-ft ulfm).
bool MpiOutlivesRanks();

// What a world begins with. Where MPI outlives ranks and the last world was
// abandoned, for survivors, and for a world of all unless that one was of a
// communicator: revokes its communicators, so that every rank comes back from
// its calls on them, and goes on with its ranks that live, in the order that
// they had. Collective over the ranks, but for a world of all where MPI does
// not outlive ranks. Errors: Unavailable when MPI fails.
absl::Status BeginMpiWorld(const MpiRanks& ranks);

// The world that began last was shut down. Collective over its ranks.
void EndMpiWorld();

// The world that began last cannot be used any more, and was not shut down.
void AbandonMpiWorld();

// Whether processes have died that were ranks of a world of this process.
bool MpiHasLostRanks();

// The ranks of the world of which MPI has heard that they died, ascending.
std::vector<int> DeadMpiRanks();

// Whether a rank has begun another world without waiting for this one's end.
bool IsMpiWorldRevoked();

// A communicator of this world, for as long as it exists.
void TrackMpiCommunicator(MpiHandle communicator);
void ForgetMpiCommunicator(MpiHandle communicator);

// Ends all ranks' calls on the world's communicator and what is tracked, once
// one has failed: those that wait for a rank that has come back from an error
// would wait for ever. Nothing where MPI does not outlive ranks.
void RevokeMpiWorld();

}  // namespace hvdlite::collective
