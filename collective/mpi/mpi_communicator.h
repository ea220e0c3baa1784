// The Communicator over MPI 3.1.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "collective/communicator.h"

namespace hvdlite::collective {

struct MpiCommunicatorOptions {
  // Elements per MPI call at most (bytes where nothing is reduced); what is
  // beyond it takes several calls. INT_MAX at most.
  int64_t max_count_per_call = 1 << 30;
};

// A communicator over a duplicate of MPI_COMM_WORLD. Collective. MPI must be
// initialised, and stay so until the communicator is gone; if it was finalized
// nevertheless, destroying the communicator does nothing. Ranks that differ in
// what they call are not detected. Subgroups have the same options. Errors:
// InvalidArgument for the options, FailedPrecondition when MPI is not
// initialised or finalized already, Unavailable when MPI fails.
absl::StatusOr<std::unique_ptr<Communicator>> CreateMpiCommunicator(
    MpiCommunicatorOptions options = {});

}  // namespace hvdlite::collective
