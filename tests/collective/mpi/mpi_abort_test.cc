// One rank's Abort ends the other, which waits for it.
#include "collective/mpi/mpi_communicator.h"
#include "tests/collective/mpi/check.h"

using hvdlite::collective::CreateMpiCommunicator;
using hvdlite::collective::MpiSession;
using hvdlite::testing::Check;

int main() {
  auto session = MpiSession::Start();
  Check(session.ok(), session.status().ToString());
  auto communicator = CreateMpiCommunicator();
  Check(communicator.ok(), communicator.status().ToString());
  if ((*session)->topology().rank == 1) (*session)->Abort(7);
  (void)(*communicator)->Barrier();
  return 0;
}
