#include "tools/hvdlite_bench/communicators.h"

#include <utility>

#include "base/status_macros.h"
#include "collective/allreduce_table.h"
#include "collective/mpi/mpi_communicator.h"
#include "collective/mpi/mpi_session.h"
#include "collective/shm/shm_communicator.h"

namespace hvdlite::tools {
namespace {

using collective::Communicator;

absl::StatusOr<std::unique_ptr<Communicator>> CreateShm() {
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<collective::MpiSession> session,
                           collective::MpiSession::Start());
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> flat,
                           collective::CreateMpiCommunicator());
  return collective::CreateShmCommunicator(
      flat, session->topology().cross_rank_of_rank,
      collective::AllreduceTable::BuiltIn());
}

}  // namespace

std::vector<NamedCommunicator> Communicators() {
  return {
      {"mpi", [] { return collective::CreateMpiCommunicator(); }},
      {"shm", CreateShm},
  };
}

}  // namespace hvdlite::tools
