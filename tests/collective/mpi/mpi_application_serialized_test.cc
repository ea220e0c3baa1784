// An application that initialises MPI with MPI_THREAD_SERIALIZED shares it, and
// finalizes it itself, even before the communicator is gone.
#include <mpi.h>

#include "collective/mpi/mpi_communicator.h"
#include "tests/collective/mpi/check.h"

using hvdlite::collective::CreateMpiCommunicator;
using hvdlite::collective::MpiSession;
using hvdlite::testing::Check;

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  auto session = MpiSession::Start();
  Check(session.ok(), session.status().ToString());
  Check((*session)->application_owns_mpi(), "the application owns MPI");
  auto communicator = CreateMpiCommunicator();
  Check(communicator.ok(), communicator.status().ToString());
  Check((*communicator)->Barrier().ok(), "the barrier works");
  Check((*session)->Finalize().ok(), "Finalize succeeds");
  int finalized = 1;
  MPI_Finalized(&finalized);
  Check(finalized == 0, "Finalize leaves the application's MPI alone");
  MPI_Finalize();
  communicator->reset();
  Check(MpiSession::Start().status().code() ==
            absl::StatusCode::kFailedPrecondition,
        "Start refuses once MPI is finalized");
  return 0;
}
