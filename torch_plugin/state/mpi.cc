#include <ATen/Parallel.h>
#include <hvdlite/mpi.h>
#include <hvdlite/world.h>

#include "absl/status/status.h"
#include "negotiation/world/current_world.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

absl::Status CheckCommunicator(MPI_Comm communicator) {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized == 0 || finalized != 0) {
    return absl::FailedPreconditionError(
        "hvdlite::init(MPI_Comm) was called before MPI_Init_thread or after "
        "MPI_Finalize: call it between MPI_Init_thread "
        "(MPI_THREAD_SERIALIZED) and MPI_Finalize, or call hvdlite::init() "
        "without a communicator");
  }
  if (communicator == MPI_COMM_NULL) {
    return absl::InvalidArgumentError(
        "hvdlite::init(MPI_Comm) got MPI_COMM_NULL: call it only on ranks of "
        "the communicator");
  }
  int is_inter = 0;
  if (MPI_Comm_test_inter(communicator, &is_inter) != MPI_SUCCESS ||
      is_inter != 0) {
    return absl::InvalidArgumentError(
        "hvdlite::init(MPI_Comm) needs an intracommunicator: merge the two "
        "groups with MPI_Intercomm_merge");
  }
  return absl::OkStatus();
}

}  // namespace

void init(MPI_Comm communicator, const Config& config) {
  internal::ThrowIfForked();
  internal::ThrowIfError(CheckCommunicator(communicator));
  at::get_num_threads();  // LibTorch sets the threads of OpenMP, too
  internal::ThrowIfConfigError(internal::StartCurrentWorld(
      config, {.communicator = MPI_Comm_c2f(communicator)}, build_info()));
}

}  // namespace hvdlite
