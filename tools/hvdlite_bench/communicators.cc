#include "tools/hvdlite_bench/communicators.h"

#include <utility>

#include "base/status_macros.h"
#include "collective/mpi/mpi_communicator.h"
#include "collective/mpi/mpi_session.h"
#include "collective/shm/shm_communicator.h"

namespace hvdlite::tools {
namespace {

using collective::Communicator;

absl::StatusOr<std::unique_ptr<Communicator>> CreateShm(
    const collective::AllreduceTable& table) {
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<collective::MpiSession> session,
                           collective::MpiSession::Start());
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> flat,
                           collective::CreateMpiCommunicator());
  return collective::CreateShmCommunicator(
      flat, session->topology().cross_rank_of_rank, table);
}

}  // namespace

std::vector<NamedCommunicator> Communicators(
    const collective::AllreduceTable& table) {
  return {
      {"mpi", [] { return collective::CreateMpiCommunicator(); }},
      {"shm", [table] { return CreateShm(table); }},
  };
}

}  // namespace hvdlite::tools
