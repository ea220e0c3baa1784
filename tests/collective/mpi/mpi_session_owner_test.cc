// A session that initialises MPI finalizes it, once.
#include <mpi.h>

#include "collective/mpi/mpi_communicator.h"
#include "tests/collective/mpi/check.h"

using hvdlite::collective::CreateMpiCommunicator;
using hvdlite::collective::MpiSession;
using hvdlite::testing::Check;

int main() {
  Check(CreateMpiCommunicator().status().code() ==
            absl::StatusCode::kFailedPrecondition,
        "there is no communicator before MPI is initialised");
  auto session = MpiSession::Start();
  Check(session.ok(), session.status().ToString());
  Check(!(*session)->application_owns_mpi(), "the session owns MPI");
  Check((*session)->topology().size == 2, "two ranks");
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  Check(level >= MPI_THREAD_SERIALIZED, "the thread level is SERIALIZED");
  {
    auto communicator = CreateMpiCommunicator();
    Check(communicator.ok(), communicator.status().ToString());
    Check((*communicator)->Barrier().ok(), "the barrier works");
  }
  // These outlive MPI, which must do no harm.
  auto late = CreateMpiCommunicator();
  Check(late.ok(), late.status().ToString());
  auto late_subgroup = (*late)->CreateSubgroup({0, 1}, /*tag=*/0);
  Check(late_subgroup.ok(), late_subgroup.status().ToString());
  Check((*session)->Finalize().ok(), "Finalize succeeds");
  int finalized = 0;
  MPI_Finalized(&finalized);
  Check(finalized != 0, "Finalize finalizes MPI");
  Check((*session)->Finalize().ok(), "Finalize may be called again");
  const absl::Status again = MpiSession::Start().status();
  Check(again.code() == absl::StatusCode::kFailedPrecondition,
        "Start refuses a second time: " + again.ToString());
  Check(CreateMpiCommunicator().status().code() ==
            absl::StatusCode::kFailedPrecondition,
        "there is no communicator after MPI is finalized");
  return 0;
}
