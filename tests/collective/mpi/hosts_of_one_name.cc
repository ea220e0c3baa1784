// Prints, on rank 0, which hosts the ranks are on.
#include <mpi.h>

#include <cstdio>

#include "collective/mpi/mpi_communicator.h"
#include "tests/collective/mpi/check.h"

using hvdlite::collective::MpiSession;
using hvdlite::testing::Check;

int main() {
  const auto session = MpiSession::Start();
  Check(session.ok(), session.status().ToString());
  const hvdlite::collective::Topology& topology = (*session)->topology();
  for (int rank = 0; topology.rank == 0 && rank < topology.size; ++rank) {
    const auto index = static_cast<size_t>(rank);
    std::printf("rank %d: host %d of %d, %s\n", rank,
                topology.cross_rank_of_rank[index], topology.cross_size,
                topology.host_of_rank[index].c_str());
  }
  std::fflush(stdout);
  Check((*session)->Finalize().ok(), "Finalize succeeds");
  return 0;
}
