// An application that initialises MPI with MPI_THREAD_FUNNELED gets an error
// that says what to do.
#include <mpi.h>

#include "collective/mpi/mpi_communicator.h"
#include "tests/collective/mpi/check.h"

using hvdlite::collective::MpiSession;
using hvdlite::testing::Check;

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  Check(level == MPI_THREAD_FUNNELED, "MPI gives the level that was asked for");
  const auto session = MpiSession::Start();
  Check(session.status().code() == absl::StatusCode::kFailedPrecondition,
        "Start refuses: " + session.status().ToString());
  const std::string message(session.status().message());
  for (const char* part : {"MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                           "call MPI_Init_thread"}) {
    Check(message.find(part) != std::string::npos,
          std::string(part) + " is in: " + message);
  }
  int finalized = 1;
  MPI_Finalized(&finalized);
  Check(finalized == 0, "MPI is still the application's");
  MPI_Finalize();
  return 0;
}
