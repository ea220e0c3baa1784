// MpiSession: this process's use of MPI, from initialisation to finalisation.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "collective/topology.h"

namespace hvdlite::collective {

// Initialises MPI with MPI_THREAD_SERIALIZED unless the application has done
// so. All MPI calls of the process must be serialised by the caller.
class MpiSession {
 public:
  // `before_finalize` runs, at most once, at the beginning of an MPI_Finalize
  // that somebody else calls while the session lives, in the thread that calls
  // it. Everything of MPI still works there, and this session may be ended:
  // what uses MPI must go, since nothing may call it afterwards.
  // Errors: FailedPrecondition when the application initialised MPI with a
  // thread level below SERIALIZED, or has finalized it already; Internal when
  // MPI fails.
  static absl::StatusOr<std::unique_ptr<MpiSession>> Start(
      std::function<void()> before_finalize = [] {});

  virtual ~MpiSession() = default;  // does not finalize

  virtual const Topology& topology() const = 0;

  // True if the application initialised MPI; it then finalizes it, too.
  virtual bool application_owns_mpi() const = 0;

  // Ends the session: finalizes MPI if this session initialised it and nobody
  // else finalizes it.
  // Collective; call it on all ranks, after every communicator is gone.
  virtual absl::Status Finalize() = 0;

  // Ends all ranks at once (MPI_Abort). Does not return.
  [[noreturn]] virtual void Abort(int exit_code) = 0;
};

}  // namespace hvdlite::collective
