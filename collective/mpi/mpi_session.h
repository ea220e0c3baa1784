// MpiSession: this process's use of MPI, from initialisation to finalisation.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "collective/topology.h"

namespace hvdlite::collective {

// Initialises MPI with MPI_THREAD_SERIALIZED unless the application has done
// so. All MPI calls of the process must be serialised by the caller.
class MpiSession {
 public:
  // Errors: FailedPrecondition when the application initialised MPI with a
  // thread level below SERIALIZED, or has finalized it already; Internal when
  // MPI fails.
  static absl::StatusOr<std::unique_ptr<MpiSession>> Start();

  virtual ~MpiSession() = default;  // does not finalize

  virtual const Topology& topology() const = 0;

  // True if the application initialised MPI; it then finalizes it, too.
  virtual bool application_owns_mpi() const = 0;

  // Finalizes MPI if this session initialised it and nobody else finalized it.
  // Collective; call it on all ranks, after every communicator is gone.
  virtual absl::Status Finalize() = 0;

  // Ends all ranks at once (MPI_Abort). Does not return.
  [[noreturn]] virtual void Abort(int exit_code) = 0;
};

}  // namespace hvdlite::collective
