// MPI 3.1: this process's use of it, from initialisation to finalisation, and
// the Communicator over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collective/communicator.h"
#include "collective/mpi/mpi_world.h"
#include "collective/topology.h"

namespace hvdlite::collective {

// Initialises MPI with MPI_THREAD_SERIALIZED unless the application has done
// so. All MPI calls of the process must be serialised by the caller.
class MpiSession {
 public:
  // Hears what Start does next, inside MPI, and whom it waits for there; as of
  // the first time without a second text, all ranks have come to Start.
  using OnStage =
      std::function<void(const std::string& stage, const std::string& awaited)>;

  // `before_finalize` runs, at most once, at the beginning of an MPI_Finalize
  // that somebody else calls while the session lives, in the thread that calls
  // it. Everything of MPI still works there, and this session may be ended:
  // what uses MPI must go, since nothing may call it afterwards.
  // `ranks`: where a communicator is given, the application has initialised
  // MPI, and only its ranks call Start.
  // Errors: FailedPrecondition when the application initialised MPI with a
  // thread level below SERIALIZED, or has finalized it already; Internal when
  // MPI fails.
  static absl::StatusOr<std::unique_ptr<MpiSession>> Start(
      std::function<void()> before_finalize = [] {},
      const OnStage& on_stage = [](const auto&, const auto&) {},
      const MpiRanks& ranks = {});

  // Does not finalize. A session that has not been ended leaves a broken world:
  // where MPI outlives ranks, the next one to start is of those that are left.
  virtual ~MpiSession() = default;

  virtual const Topology& topology() const = 0;

  // True if the application initialised MPI; it then finalizes it, too.
  virtual bool application_owns_mpi() const = 0;

  // Whether a rank that dies leaves the others running: this MPI has ULFM, and
  // its launcher was asked for it (mpirun --with-ft ulfm).
  virtual bool outlives_ranks() const = 0;

  // The ranks of which MPI has heard that they died, ascending; none where it
  // does not outlive ranks.
  virtual std::vector<int> DeadRanks() const = 0;

  // Whether other ranks go on without this session's, after one was lost.
  virtual bool is_revoked() const = 0;

  // Ends the session: finalizes MPI if this session initialised it and nobody
  // else finalizes it. Once a rank has been lost it does not, since Open MPI's
  // MPI_Finalize (5.0.7) may wait for it for ever: the process just exits.
  // Collective; call it on all ranks, after every communicator is gone.
  virtual absl::Status Finalize() = 0;

  // Ends all ranks at once (MPI_Abort). Does not return.
  [[noreturn]] virtual void Abort(int exit_code) = 0;
};

struct MpiCommunicatorOptions {
  // Elements per MPI call at most (bytes of a broadcast); what is beyond it
  // takes several calls. INT_MAX at most.
  int64_t max_count_per_call = 1 << 30;
  // Buffers of this size or more, and of a segment or more for each rank,
  // travel in messages of `segment_bytes`, a multiple of 64, around
  // the ring of ranks or in pairs; smaller ones, and broadcasts, by MPI's
  // collective calls. 1 GiB at most.
  size_t ring_from_bytes = size_t{256} << 10;
  size_t segment_bytes = size_t{60} << 10;
  // Only where each rank has a node of its own: through memory, large messages
  // are faster. True: anywhere, for tests.
  bool segments_within_nodes = false;
};

// A communicator over a duplicate of the ranks' own (MpiWorld()). Collective.
// MPI must be initialised, and stay so until the communicator is gone; if it
// was finalized nevertheless, destroying the communicator does nothing. Ranks
// that differ in what they call are not detected. Subgroups have the same
// options. Errors: InvalidArgument for the options, FailedPrecondition when MPI
// is not initialised or finalized already, Unavailable when MPI fails.
absl::StatusOr<std::unique_ptr<Communicator>> CreateMpiCommunicator(
    MpiCommunicatorOptions options = {});

// "MPI_THREAD_SERIALIZED" for MPI's constant of that name.
std::string MpiThreadLevelName(int level);

}  // namespace hvdlite::collective
